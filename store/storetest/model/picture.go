package model

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Everything is all that a server keeps in its store.
type Everything interface {
	journal.Store
	journal.SharedStore
	journal.LogStore
	access.Store
	// PurgeReceipts deletes the receipts older than the time and returns how many.
	PurgeReceipts(ctx context.Context, before time.Time) (int, error)
}

// Keys are the Idempotency-Keys the suite uses.
func Keys() []string { return []string{"key-1", "key-2", "key-3"} }

// PoolKinds are the kinds of entries of the pool that the suite uses.
func PoolKinds() []string { return []string{"drain", "quota"} }

// Picture is everything a store shows of itself.
type Picture struct {
	Studies   []journal.Study
	Trials    map[string][]trial.Trial
	Reports   map[trial.ID][]trial.Report
	Events    map[string][]journal.Event
	Told      map[trial.ID][]journal.Event // by trial
	Snapshots map[string]journal.Snapshot
	Receipts  map[string]journal.Receipt
	Logs      map[trial.ID]string
	Tokens    []access.Token
	// Truth is the ground truth by type of machine, All of it in one order.
	Truth map[string][]similarity.Record
	All   []similarity.Record
	// Architectures are all, the newest first.
	Architectures []emu.Architecture
	// Pool has the entries of the pool, by kind.
	Pool map[string][]journal.PoolEntry `json:",omitempty"`
}

// Blank is the picture of an empty store.
func Blank() Picture {
	return Picture{
		Trials: map[string][]trial.Trial{}, Reports: map[trial.ID][]trial.Report{},
		Events: map[string][]journal.Event{}, Told: map[trial.ID][]journal.Event{},
		Snapshots: map[string]journal.Snapshot{}, Receipts: map[string]journal.Receipt{}, Logs: map[trial.ID]string{},
		Truth: map[string][]similarity.Record{}, Pool: map[string][]journal.PoolEntry{},
	}
}

// Take reads the whole store.
func Take(ctx context.Context, store Everything) (Picture, error) {
	p := Blank()
	var err error
	if p.Studies, err = store.Studies(ctx); err != nil {
		return p, err
	}
	for _, one := range p.Studies {
		if err := p.takeStudy(ctx, store, one.ID); err != nil {
			return p, err
		}
	}
	for _, key := range Keys() {
		receipt, err := store.Receipt(ctx, key)
		if err == nil {
			p.Receipts[key] = receipt
		} else if !problem.Is(err, problem.NotFound) {
			return p, err
		}
	}
	if p.Tokens, err = store.Tokens(ctx); err != nil {
		return p, err
	}
	if p.Architectures, err = store.Architectures(ctx, journal.MaxArchitectures); err != nil {
		return p, err
	}
	for _, kind := range PoolKinds() {
		entries, err := store.PoolEntries(ctx, kind)
		if err != nil {
			return p, err
		}
		if len(entries) > 0 {
			p.Pool[kind] = entries
		}
	}
	err = p.takeTruth(ctx, store)
	p.tidy()
	return p, err
}

func (p *Picture) takeTruth(ctx context.Context, store Everything) error {
	types, err := store.RecordTypes(ctx)
	if err != nil {
		return err
	}
	for _, machine := range types {
		if p.Truth[machine], err = store.Records(ctx, machine); err != nil {
			return err
		}
	}
	p.All, err = store.Records(ctx, "")
	return err
}

func (p *Picture) takeStudy(ctx context.Context, store Everything, id string) error {
	var err error
	if p.Trials[id], err = store.Trials(ctx, id); err != nil {
		return err
	}
	if p.Events[id], err = store.Events(ctx, id, math.MinInt64, math.MaxInt32); err != nil {
		return err
	}
	snapshot, err := store.Snapshot(ctx, id)
	if err == nil {
		p.Snapshots[id] = snapshot
	} else if !problem.Is(err, problem.NotFound) {
		return err
	}
	for _, t := range p.Trials[id] {
		if p.Reports[t.ID], err = store.Reports(ctx, t.ID); err != nil {
			return err
		}
		if p.Told[t.ID], err = store.TrialEvents(ctx, id, t.ID); err != nil {
			return err
		}
		if p.Logs[t.ID], err = store.Log(ctx, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// tidy leaves out what is empty: no list is as good as an empty one.
func (p *Picture) tidy() {
	maps.DeleteFunc(p.Trials, func(_ string, list []trial.Trial) bool { return len(list) == 0 })
	maps.DeleteFunc(p.Reports, func(_ trial.ID, list []trial.Report) bool { return len(list) == 0 })
	maps.DeleteFunc(p.Events, func(_ string, list []journal.Event) bool { return len(list) == 0 })
	maps.DeleteFunc(p.Told, func(_ trial.ID, list []journal.Event) bool { return len(list) == 0 })
	maps.DeleteFunc(p.Logs, func(_ trial.ID, log string) bool { return log == "" })
	if len(p.Studies) == 0 {
		p.Studies = nil
	}
	if len(p.Tokens) == 0 {
		p.Tokens = nil
	}
	if len(p.Architectures) == 0 {
		p.Architectures = nil
	}
	if len(p.All) == 0 {
		p.All = nil
	}
}
