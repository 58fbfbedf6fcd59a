"""dpcalc beside other privacy accountants, on the same questions: ``python -m benchmarks.peers``.

`questions` says what is asked, `environments` installs who is asked, `adapters` put each question in each package's own
words, `worker` and `session` ask it in a process of its own, `shell` asks from the prompt, `truth` knows the answer,
`report` writes it down. Nothing but the standard library is needed to start.
"""
