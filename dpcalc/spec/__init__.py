"""What is run and asked, validated, without formulas."""
