"""Properties of frozen classes that are worked out once."""

from dpcalc.model.draft import once


class Counted:
    calls = 0

    @once
    def doubled(self) -> int:
        """Twice 21."""
        self.calls += 1
        return 42


def test_a_property_is_worked_out_once() -> None:
    counted = Counted()
    assert (counted.doubled, counted.doubled, counted.calls) == (42, 42, 1)


def test_a_property_that_is_asked_of_the_class_is_the_property_itself() -> None:
    assert Counted.doubled.__doc__ == "Twice 21."
