import itertools, sys
from dpcalc.engine.ask import ask
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError
import math
ALGS="pnsgd skip stop local shuffled rotation shuffled-stop online cyclic shuffle-once rotation-epochs shuffled-epochs noisy-sgd noisy-gd repeated dp-sgd-output dp-sgd-gradient".split()
LOSS={"convex-smooth":dict(loss_class="convex-smooth",smoothness=1.0),"strong":dict(loss_class="convex-smooth",smoothness=1.0,strong_convexity=.1),"convex":dict(loss_class="convex"),"smooth":dict(loss_class="smooth",smoothness=1.0),"lipschitz":dict(loss_class="lipschitz")}
from dpcalc.model.algorithm import ALGORITHMS
seen={}
for a,l,d,rel,noise in itertools.product(ALGS,LOSS,(None,2.0),("last","epoch"),("noise_std","laplace_scale")):
    al=ALGORITHMS[a]
    v=dict(algorithm=a,records=100,lipschitz=1.0,step_size=.5,release=rel,**LOSS[l],diameter=d,epochs=3)
    v[noise]=0.5
    if a=="online":
        for k in ("noise_std","laplace_scale"): v.pop(k,None)
        v.update(noise="gaussian" if noise=="noise_std" else "laplace",c1=2.0,c2=1.5,decay_exponent=1.5,index=10)
    v={k:x for k,x in v.items() if k in ("algorithm",) or k in al.parameters}
    if rel=="epoch" and "release" not in al.parameters: continue
    try:
        c=ask("compare",v,Question(delta=1e-6,log_delta=math.log(1e-6)),notes=False)
        b=c.best; r=f"{b.value:.4g} {b.bound}" if b else "NONE"
        if c.warnings: r+=" WARN "+str(c.warnings)
    except DpcalcError as e:
        r=f"{type(e).__name__}({e.exit_code}): {e.message} | {e.hint}"
    if "(" in r: print(a,l,d,rel,noise,"->",r,flush=True)
