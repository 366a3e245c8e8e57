package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// firstTruthSeed is far from every repetition's seed: what a ground truth was
// measured with is never searched with again.
const firstTruthSeed = 100_000

// truthFile is where a workload's ground truth is kept.
func (o options) truthFile(w workload) string {
	return o.inFolder("truth", fmt.Sprintf("scale-%g", o.scale), w.name+".json")
}

// teachers are the workloads whose ground truth an arm begins with.
func teachers(w workload, t truth) []workload {
	var list []workload
	for _, one := range trainable() {
		same := one.name == w.name
		if t == others && !same && one.data != w.data || t == everything {
			list = append(list, one)
		}
	}
	if t == everything && w.special() {
		list = append(list, w)
	}
	return list
}

// taught are the teachers of an arm among those the command line names.
func (o options) taught(w workload, t truth) []workload {
	wanted := strings.FieldsFunc(o.teachers, func(r rune) bool { return r == ',' })
	return slices.DeleteFunc(teachers(w, t), func(one workload) bool {
		return len(wanted) > 0 && one.name != w.name && !slices.Contains(wanted, one.name)
	})
}

// truths are the files of what an arm knows beforehand.
func (o options) truths(w workload, t truth) ([]string, error) {
	if t == nothing || t == "" {
		return nil, nil
	}
	var files []string
	for _, one := range o.taught(w, t) {
		if _, err := os.Stat(o.truthFile(one)); err != nil {
			return nil, fmt.Errorf("the ground truth of %s is missing: %w", one.name, err)
		}
		files = append(files, o.truthFile(one))
	}
	return files, nil
}

// prepare trains every workload that a warm arm learns from, each on a server
// that knows nothing, and keeps what was learned.
func (o options) prepare(ctx context.Context, chosen []workload, fielded []arm) error {
	var needed []workload
	for _, w := range chosen {
		for _, a := range fielded {
			for _, one := range o.taught(w, a.truth) {
				if !slices.ContainsFunc(needed, func(n workload) bool { return n.name == one.name }) {
					needed = append(needed, one)
				}
			}
		}
	}
	for number, w := range needed {
		if _, err := os.Stat(o.truthFile(w)); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		start := time.Now()
		if err := o.learn(ctx, w, firstTruthSeed+number); err != nil {
			return fmt.Errorf("ground truth of %s: %w", w.name, err)
		}
		fmt.Printf("ground truth of %s: %.1f s\n", w.name, time.Since(start).Seconds())
	}
	return nil
}

// lessons is how many full trainings a ground truth is learned from.
const lessons = 3

// learn trains a workload in full, with a few configurations of its space, and
// exports what was learned of it. Trials of a ladder would teach less for the
// same time: most end before many system configurations were tried.
func (o options) learn(ctx context.Context, w workload, seed int) (err error) {
	cold, err := pick(arms(), []string{"cold"}, func(a arm) string { return a.name })
	if err != nil {
		return err
	}
	s, err := openSite(ctx, o, cold[0].slots, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o.full, o.passes = true, lessons*maxEpochs
	if _, err := o.search(ctx, s, w, cold[0], seed); err != nil {
		return err
	}
	learned, err := s.client.GroundTruth(ctx, "")
	if err != nil {
		return err
	}
	if len(learned.Records) == 0 {
		return errors.New("the study taught nothing")
	}
	text, err := json.Marshal(learned)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.truthFile(w)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.truthFile(w), text, 0o644)
}

// know gives a server the ground truths of files.
func (s *site) know(ctx context.Context, files []string) error {
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var known protocol.GroundTruth
		if err := json.Unmarshal(text, &known); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := s.client.ImportGroundTruth(ctx, known); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
