"""What docs/tightness.md says beside its numbers."""

HEAD = "{command} {epsilons}"
from collections import defaultdict
NOTES = defaultdict(str)
