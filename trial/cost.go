package trial

import "strings"

// Cost is what a span of training cost, by the server's prices and carbon file.
type Cost struct {
	// Amount is money, of the machine's hours and of the energy.
	Amount   Float  `json:"amount,omitempty" doc:"of the machine's hours and of the energy, at the prices of the time"`
	Currency string `json:"currency,omitempty"`
	CO2      *Float `json:"co2_g,omitempty" doc:"grams of CO2 of the energy, at the intensity of the time"`
	// Method is how the joules in it were obtained; empty without any.
	Method string `json:"method,omitempty" doc:"how its joules were obtained; what starts with estimate is one; absent: no energy was reported"`
}

// Estimated reports whether joules that are an estimate went into it.
func (c *Cost) Estimated() bool { return c != nil && strings.HasPrefix(c.Method, "estimate") }

// Plus is the sum of both; nil stands for nothing. Amounts are not converted: the
// currency is the newest.
func (c *Cost) Plus(other *Cost) *Cost {
	if c == nil {
		return other
	}
	sum := *c
	if other != nil {
		sum.Amount += other.Amount
		if other.CO2 != nil {
			sum.CO2 = new(c.Grams() + other.Grams())
		}
		if other.Currency != "" {
			sum.Currency = other.Currency
		}
		sum.Method = Energy{Method: c.Method}.Plus(Energy{Method: other.Method}).Method
	}
	return &sum
}

// Minus takes the other out of the sum that it is in.
func (c *Cost) Minus(other *Cost) *Cost {
	if other == nil {
		return c
	}
	return c.Plus(&Cost{Amount: -other.Amount, CO2: new(-other.Grams())})
}

// Grams are those of CO2, as far as they are known.
func (c *Cost) Grams() Float {
	if c == nil || c.CO2 == nil {
		return 0
	}
	return *c.CO2
}

// Energy is what a span of training consumed.
type Energy struct {
	Joules Float `json:"joules"`
	// Method is how it was obtained: "rapl", "nvml", or "estimate: ..." with
	// the model's assumption. Anything that starts with "estimate" is labelled
	// as an estimate wherever it is shown.
	Method string `json:"method"`
}

// Plus adds what another span consumed. Sums of different methods say so, and
// a sum with an estimate in it is an estimate.
func (e Energy) Plus(other Energy) Energy {
	switch {
	case other.Method == "":
		return e
	case e.Method == "" || e.Method == other.Method:
		return Energy{Joules: e.Joules + other.Joules, Method: other.Method}
	case e.Estimated() || other.Estimated():
		return Energy{Joules: e.Joules + other.Joules, Method: "estimate: several methods"}
	default:
		return Energy{Joules: e.Joules + other.Joules, Method: "measured: several methods"}
	}
}

// Estimated reports whether the joules come from a model, not from a meter.
func (e Energy) Estimated() bool { return strings.HasPrefix(e.Method, "estimate") }
