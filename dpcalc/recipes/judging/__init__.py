"""Verdicts: the gates, the exceptions and the policy by which a case is judged."""
