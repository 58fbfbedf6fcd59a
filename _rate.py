import time
from dpcalc.cluster.dask import cluster
from tests.cluster.test_calls import shout
def main():
    with cluster("local", workers=2) as c:
        [f.result() for f in [c.submit(shout, "x"*4000) for _ in range(50)]]
        t=time.monotonic(); p=time.process_time()
        [f.result() for f in [c.submit(shout, f"{i}"+"x"*4000) for i in range(1500)]]
        n=time.monotonic()-t
        print("calls/s", 1500/n, "client+scheduler cpu ms per call", (time.process_time()-p)/1.5)
if __name__=="__main__": main()
