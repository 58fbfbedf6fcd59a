import sys, random, time
import tests.theorems.test_expanding as t
from dataclasses import replace
from tests.oracles.chains import constant
alg, N, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
r=random.Random(seed); w={}; s=time.time(); n=0
while n<N and time.time()-s<float(sys.argv[4]):
    n+=1
    case=t.small_case(r, r.choice(t.CLASSES), alg); adj="replace-one"
    if r.random()<.2: case,adj=replace(case,x_prime=constant(0.0,case.low,case.high)),"null-record"
    size=case.records if alg=="noisy-gd" else r.randint(1,case.records)
    last=r.choice(("own","nominal","drop")) if alg in t.RANDOM else "own"
    c=r.choice((1,2,3,5,12,40))
    if alg=="shuffled-epochs": c=min(c,5)
    for k,v in t.check(alg,case,size,last,c,adj).items(): w[k]=max(w.get(k,0),v)
print(alg,n,w,flush=True)
