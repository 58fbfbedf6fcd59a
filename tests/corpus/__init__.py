"""A few thousand questions to the command line, and what it answers: the referee of changes that should change nothing.

A question is a command line with the files and the environment that it needs. The questions are drawn from fixed seeds,
so every run of this package asks the same ones. They cover every command, algorithm and output format, and mistakes
that people make. Nothing here imports dpcalc: a worker process calls its entry point and keeps the exit code, stdout,
stderr and the files written. Timings and version numbers are masked, because they change on their own.

    python -m tests.corpus record before.jsonl.gz
    python -m tests.corpus record after.jsonl.gz --python ../other/.venv/bin/python
    python -m tests.corpus compare before.jsonl.gz after.jsonl.gz
    python -m tests.corpus verify

``record`` asks the version in this checkout, or the one installed for another interpreter. ``compare`` groups what
differs: exit codes, JSON values (to the last bit), JSON fields that were added, text, stderr, files. It exits with 1
unless every difference is expected: ``--allow FILE`` names a file of regular expressions, one a line, each matched
against lines such as ``json | cases[].results[].value | rdp -n 50 ... | 1.5 -> 1.6``, and ``--added-fields-ok`` allows
new fields. Lines of that file that start with # are comments.

``digests.txt`` has a digest of every answer, in which numbers are rounded to nine digits, because the last digits may
differ between machines. ``verify`` asks everything and lists the answers that differ from it. The test of this package
does the same for a sample of quick questions. After a change that is meant to change answers, or the questions, compare
recordings and write the digests from the new one:

    python -m tests.corpus digests after.jsonl.gz

Recording everything takes some minutes. ``--only REGEX`` and ``--limit N`` choose fewer questions.
"""
