"""Record the sessions again."""

from tests.cli.sessions import FILES, replayed

for path in FILES:
    path.write_text(replayed(path), encoding="utf-8")
