package system_test

import (
	"fmt"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// A knob of the catalogue can be tuned by any study: its values, and those of the
// other knobs, make the configurations to choose from.
func ExampleSettings_Grid() {
	knob, _ := system.Find(system.LoaderWorkers)
	fmt.Println(knob.Name, "is applied by the", knob.Applier)

	settings := system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{
		{Name: system.CPUThreads},
		{Name: system.LoaderWorkers, Values: []space.Value{space.Int(0), space.Int(2)}},
	}}
	for _, configuration := range settings.Grid(nil, 2) {
		fmt.Println(configuration.Key())
	}
	// Output:
	// loader_workers is applied by the script
	// cpu_threads=1 loader_workers=0
	// cpu_threads=1 loader_workers=2
	// cpu_threads=2 loader_workers=0
	// cpu_threads=2 loader_workers=2
}
