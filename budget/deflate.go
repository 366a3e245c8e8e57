package budget

// Deflated is the budget with a share of its data left out, from 0 to below 1:
// the same epochs, each over less (DiAS drops tasks of a job; Rocha's thesis,
// section 4.2.1). What is left is never less than MinFraction, and keeps six
// decimals as all fractions do.
func (b Budget) Deflated(drop float64) Budget {
	if drop > 0 && drop < 1 {
		b.DataFraction = max(MinFraction, rounded(b.DataFraction*(1-drop)))
	}
	return b
}
