"""Definitions of excess risks, by the table `dpcalc.certify.risk.costs.PRICES`."""
