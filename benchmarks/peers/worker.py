"""Runs inside a package's own environment: reads questions as lines of JSON, writes answers as lines of JSON.

    python -I worker.py ADAPTER.py BYTES_OF_MEMORY

An adapter is a module with METHODS: {kind of question: {method: function of what is given}}. Standard library only.
"""

import contextlib
import importlib.util
import json
import logging
import os
import resource
import sys
import time
import warnings


def load(path):
    """Return the module at a path, by a name that no package has."""
    spec = importlib.util.spec_from_file_location("_adapter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fresh(given, serial):
    """Return the question with a delta that differs in the tenth digit, so that no timing is of a cache."""
    return {**given, "delta": given["delta"] * (1.0 - serial * 2.0**-32)}


def timed(method, given, times, serial):
    """Return the answer and the seconds of one call, the mean of so many."""
    questions = [fresh(given, serial + j) for j in range(times)]
    start = time.perf_counter()
    for question in questions:
        value = method(question)
    return {"value": float(value), "seconds": (time.perf_counter() - start) / times}


def main(path, memory):
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # packages print what they like
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    try:
        start = time.perf_counter()
        methods = load(path).METHODS
        reply = {"methods": {kind: list(found) for kind, found in methods.items()}}
        reply["seconds"] = time.perf_counter() - start
    except Exception as error:
        methods, reply = {}, {"failed": type(error).__name__, "says": str(error)[:200]}
    print(json.dumps(reply), file=answers, flush=True)
    serial = 1
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            method = methods[asked["kind"]][asked["method"]]
            reply = timed(method, asked["given"], asked["times"], serial if asked["fresh"] else 0)
            serial += asked["times"]
        except Exception as error:  # a failure is a result here
            reply = {"failed": type(error).__name__, "says": str(error)[:200]}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
