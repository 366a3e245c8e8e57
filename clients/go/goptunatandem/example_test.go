package goptunatandem_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/c-bata/goptuna"
	"github.com/tandem-tune/tandem/clients/go/goptunatandem"
)

// An objective of goptuna's runs on the server that TANDEM_SERVER and TANDEM_TOKEN name.
func Example() {
	objective := func(trial goptuna.Trial) (float64, error) {
		x, err := trial.SuggestFloat("x", -10, 10)
		return math.Pow(x-2, 2), err
	}
	bridge, err := goptunatandem.New(context.Background(), goptunatandem.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer bridge.Close()
	options := bridge.StudyOptions(goptuna.StudyOptionLoadIfExists(true), goptuna.StudyOptionLogger(nil))
	study, err := goptuna.CreateStudy("parabola-of-goptuna", options...)
	if err != nil {
		log.Fatal(err)
	}
	if err := study.Optimize(objective, 30); err != nil {
		log.Fatal(err)
	}
	value, err := study.GetBestValue()
	fmt.Println(value < 1, err)
	// Output: true <nil>
}
