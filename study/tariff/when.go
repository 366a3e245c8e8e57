package tariff

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/study/definition"
)

const (
	// lookAhead is how far the next hour is looked for that a study waits for, in steps.
	lookAhead = 7 * 24 * time.Hour
	step      = 15 * time.Minute
)

// Waits says why a study that was created then starts no trial now; empty: it may.
func (t *Tariff) Waits(when *definition.When, created, now time.Time) string {
	if t == nil || when == nil {
		return ""
	}
	latest := created.Add(time.Duration(when.LatestStartHours * float64(time.Hour)))
	if t.suits(when, now) || !now.Before(latest) {
		return ""
	}
	zone := t.energy.zone
	if when.PriceBelow == nil {
		zone = t.carbon.zone
	}
	begins := ""
	for at := now.Truncate(step).Add(step); at.Before(latest) && at.Before(now.Add(lookAhead)); at = at.Add(step) {
		if t.suits(when, at) {
			begins = ", which begins " + at.In(zone).Format("2 January 15:04 MST")
			break
		}
	}
	why := ""
	if price, known := t.energy.at(now, ""); known && when.PriceBelow != nil {
		why = fmt.Sprintf("power below %g %s a kWh (now %g)", *when.PriceBelow, t.currency, price)
	}
	if grams, known := t.carbon.at(now, ""); known && when.CO2Below != nil {
		if why != "" {
			why += " and "
		}
		why += fmt.Sprintf("less than %g g of CO2 a kWh (now %g)", *when.CO2Below, grams)
	}
	return fmt.Sprintf("it waits for %s%s; at the latest it starts %s (when)", why, begins, latest.In(zone).Format("2 January 15:04 MST"))
}

// suits reports whether the moment is below the study's bounds. What is not known is no
// reason to wait.
func (t *Tariff) suits(when *definition.When, at time.Time) bool {
	price, priced := t.energy.at(at, "")
	grams, told := t.carbon.at(at, "")
	return !(priced && when.PriceBelow != nil && price >= *when.PriceBelow || told && when.CO2Below != nil && grams >= *when.CO2Below)
}
