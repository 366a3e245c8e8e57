// Package workers measures what real workers on unlike machines do with studies
// that want speed and with studies that want little energy: a real server, and
// three workers of this machine under limits of their own. It needs root, and a
// machine on which nothing else runs.
package workers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/unlike"
)

// A study runs one trial at a time, so that there are machines to choose from;
// an epoch is about half a second of a core's time.
const (
	epochs = 12
	rounds = 10
	// most is how long one of them may take.
	most = 10 * time.Minute
)

// Measure runs a study of so many trials that wants speed (H is 0), one that wants
// little energy (1), and then has a trial move. It fails where the server's
// accounts do not add up.
func Measure(trials int) error {
	folder, err := os.MkdirTemp("", "tandem-pool-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), 4*most)
	defer cancel()
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	if err := placed(ctx, binary, folder, trials); err != nil {
		return err
	}
	return moved(ctx, binary, folder)
}

// open starts a server for workers that probe their machines.
func open(binary, folder string) (*unlike.Site, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return unlike.Open(unlike.Options{Binary: binary, Script: self, Folder: folder, Probe: "always", Tell: func(what string) { fmt.Println(what) }})
}

// placed prints what the machines are good for, where the studies ran, and what
// they took.
func placed(ctx context.Context, binary, folder string, trials int) error {
	site, err := open(binary, folder+"/placed")
	if err != nil {
		return err
	}
	err = place(ctx, site, trials)
	return closed(site, err)
}

func closed(site *unlike.Site, err error) error {
	if failed := site.Close(); err == nil {
		err = failed
	}
	return err
}

func place(ctx context.Context, site *unlike.Site, trials int) error {
	cores := map[string]int{}
	fmt.Println("\n| machine | task | seconds | joules | joules are |\n|---|---|---|---|---|")
	for _, place := range unlike.Places() {
		worker, err := site.Start(ctx, place)
		if err != nil {
			return err
		}
		cores[place.Name] = worker.Machine.Cores
		for _, one := range worker.Probes {
			fmt.Printf("| %s | %s | %.3g | %.3g | %s |\n", place.Name, one.Workload, one.Seconds, one.Joules, one.Method)
		}
	}
	fmt.Printf("\n%d trials of %d epochs, one at a time.\n\n| H | epochs on | moves | seconds of training | joules, an estimate |\n|---|---|---|---|---|\n", trials, epochs)
	for _, energy := range []float64{0, 1} {
		study := unlike.Study{Name: fmt.Sprintf("h-%g", energy), Energy: energy, Trials: trials, Parallel: 1, Epochs: epochs, Rounds: rounds}
		id, err := site.Create(ctx, study)
		if err != nil {
			return err
		}
		books, err := site.Await(ctx, id, func(unlike.Books) bool { return false })
		if err != nil {
			return err
		}
		if faults := site.Faults(books, cores); len(faults) > 0 {
			return fmt.Errorf("study %s does not add up: %s", study.Name, strings.Join(faults, "; "))
		}
		fmt.Printf("| %g | %s | %d | %.1f | %.1f |\n", energy, shown(books), books.Moves(), books.View.Progress.TrialSeconds, float64(books.View.Progress.Energy.Joules))
	}
	return nil
}

// shown is how many epochs each worker has trained.
func shown(books unlike.Books) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(books.ByWorker)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, books.ByWorker[name].Epochs))
	}
	return strings.Join(parts, ", ")
}

// moved has a trial that wants little energy run on the fast machine while there
// is no other, and prints what becomes of it when the frugal one arrives.
func moved(ctx context.Context, binary, folder string) error {
	site, err := open(binary, folder+"/moved")
	if err != nil {
		return err
	}
	return closed(site, move(ctx, site))
}

func move(ctx context.Context, site *unlike.Site) error {
	fast, frugal := unlike.Places()[0], unlike.Places()[1]
	cores := map[string]int{}
	first, err := site.Start(ctx, fast)
	if err != nil {
		return err
	}
	id, err := site.Create(ctx, unlike.Study{Name: "moves", Energy: 1, Trials: 1, Epochs: 20 * epochs, Rounds: rounds})
	if err != nil {
		return err
	}
	if _, err := site.Await(ctx, id, func(b unlike.Books) bool { return len(b.Reports) >= 5 }); err != nil {
		return err
	}
	second, err := site.Start(ctx, frugal)
	if err != nil {
		return err
	}
	cores[fast.Name], cores[frugal.Name] = first.Machine.Cores, second.Machine.Cores
	arrived := time.Now()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if _, err := site.Await(ctx, id, func(b unlike.Books) bool { return b.ByWorker[frugal.Name].Epochs >= 5 }); err != nil {
		return err
	}
	took := time.Since(arrived).Seconds()
	if _, err := site.Client.StopStudy(ctx, id); err != nil {
		return err
	}
	books, err := site.Await(ctx, id, func(unlike.Books) bool { return false })
	if err != nil {
		return err
	}
	if faults := site.Faults(books, cores); len(faults) > 0 {
		return fmt.Errorf("the study that moved does not add up: %s", strings.Join(faults, "; "))
	}
	fmt.Printf("\nA trial with H = 1 began on fast; %.0f s after frugal had arrived it had trained 5 epochs there. Epochs: %s; every epoch once.\n", took, shown(books))
	for _, name := range []string{fast.Name, frugal.Name} {
		one := books.ByWorker[name]
		fmt.Printf("An epoch on %s: %.3g s, %.3g J (an estimate).\n", name, one.Seconds/float64(one.Epochs), one.Joules/float64(one.Epochs))
	}
	return nil
}
