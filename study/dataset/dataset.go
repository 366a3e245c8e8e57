// Package dataset keeps which encrypted data sets users have published. Their bytes are
// artifacts, which workers decrypt: the server cannot.
package dataset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
)

const (
	// entryKind is the kind of the pool's entries that hold data sets.
	entryKind = "dataset"
	// mostDatasets bounds how many an owner has.
	mostDatasets = 1000
)

// Options are what a Catalogue takes from its surroundings.
type Options struct {
	Now func() time.Time
	// Entries returns the stored entries of the kind.
	Entries func(ctx context.Context, kind string) ([]journal.PoolEntry, error)
	// Apply makes the entries durable, with the answer under the call's key.
	Apply func(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error)
	// Sent is an artifact that the caller has sent lately; a conflict where it has not.
	Sent func(ctx context.Context, artifact string) (bytes int64, sealed bool, err error)
	// Bound is how many bytes of data sets the owner may have; 0: no bound.
	Bound func(owner string) int64
	// Uses are the names of the owner's studies that may still need the data set.
	Uses func(owner, artifact string) []string
}

// Catalogue has the use cases. It is safe for concurrent use.
type Catalogue struct {
	options Options
	gate    gate.Gate
}

// New returns the catalogue of what is stored.
func New(options Options) *Catalogue { return &Catalogue{options, gate.New()} }

// PublishDataset makes what the caller has uploaded one of its data sets.
func (c *Catalogue) PublishDataset(ctx context.Context, ask protocol.DatasetRequest) (protocol.Dataset, error) {
	caller := access.CallerOf(ctx)
	made := protocol.Dataset{DatasetRequest: ask, Owner: cmp.Or(caller.Owner, access.Administrators), Published: c.options.Now().UTC().Round(0)}
	if err := c.gate.Enter(ctx); err != nil {
		return made, err
	}
	defer c.gate.Leave()
	bytes, sealed, err := c.options.Sent(ctx, ask.Artifact)
	if err != nil {
		return made, err
	}
	if !sealed {
		return made, problem.New(problem.Invalid, "the file is not encrypted: publish what 'tandem dataset encrypt' wrote")
	}
	all, err := c.Datasets(ctx)
	if err != nil {
		return made, err
	}
	count, sum := 0, bytes
	for _, one := range all {
		if one.Owner == made.Owner && one.Artifact != ask.Artifact {
			count, sum = count+1, sum+one.Bytes
		}
	}
	if most := c.options.Bound(caller.Owner); most > 0 && sum > most {
		return made, problem.New(problem.Exhausted, "your data sets would have %s, and your quota is %s: delete one first, or have the quota raised", format.Size(sum), format.Size(most))
	}
	if count >= mostDatasets {
		return made, problem.New(problem.Exhausted, "you have %d data sets, and there may be no more: delete one first", count)
	}
	made.Bytes = bytes
	_, err = c.options.Apply(ctx, []journal.PoolEntry{journal.Entry(entryKind, journal.Reference(caller.Owner, ask.Artifact), made)}, &made)
	return made, err
}

// Datasets are those that the caller sees, by name, and the newest of a name first.
func (c *Catalogue) Datasets(ctx context.Context) ([]protocol.Dataset, error) {
	entries, err := c.options.Entries(ctx, entryKind)
	if err != nil {
		return nil, err
	}
	list := []protocol.Dataset{}
	for _, one := range entries {
		err := journal.Decode(one, func(stored protocol.Dataset) {
			if access.CallerOf(ctx).Sees("", journal.OwnerOf(one.Name)) {
				list = append(list, stored)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b protocol.Dataset) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b.Published.Compare(a.Published))
	})
	return list, nil
}

// DeleteDataset removes one of the caller's by its SHA-256; an administrator any user's. The
// error is not_found, or a conflict where a study may still need it.
func (c *Catalogue) DeleteDataset(ctx context.Context, artifact string) error {
	if err := c.gate.Enter(ctx); err != nil {
		return err
	}
	defer c.gate.Leave()
	all, err := c.Datasets(ctx)
	if err != nil {
		return err
	}
	own := cmp.Or(access.CallerOf(ctx).Owner, access.Administrators)
	slices.SortStableFunc(all, func(a, _ protocol.Dataset) int {
		if a.Owner == own {
			return -1
		}
		return 0
	})
	at := slices.IndexFunc(all, func(one protocol.Dataset) bool { return one.Artifact == artifact })
	if at < 0 {
		return problem.New(problem.NotFound, "there is no data set %s: 'tandem dataset list' says which there are", artifact)
	}
	owner := all[at].Owner
	if owner == access.Administrators {
		owner = ""
	}
	if users := c.options.Uses(owner, artifact); len(users) > 0 {
		return problem.New(problem.Conflict, "the data set %s is used by %s: stop or delete that first", all[at].Name, strings.Join(users, ", "))
	}
	_, err = c.options.Apply(ctx, []journal.PoolEntry{{Kind: entryKind, Name: journal.Reference(owner, artifact)}}, new(struct{}))
	return err
}

// CheckDatasets refuses a study with a data set that its owner has not published.
func (c *Catalogue) CheckDatasets(ctx context.Context, def definition.Definition) error {
	if len(def.Datasets()) == 0 {
		return nil
	}
	all, err := c.Datasets(ctx)
	if err != nil {
		return err
	}
	own, faults := cmp.Or(access.CallerOf(ctx).Owner, access.Administrators), []problem.Field{}
	for _, name := range slices.Sorted(maps.Keys(def.Datasets())) {
		hash := def.Datasets()[name]
		if !slices.ContainsFunc(all, func(one protocol.Dataset) bool { return one.Artifact == hash && one.Name == name && one.Owner == own }) {
			faults = append(faults, problem.Field{Path: "encryption.datasets." + name, Value: hash, Message: fmt.Sprintf("must be the SHA-256 of one of your data sets %s: 'tandem dataset list' says which there are", name)})
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the study file names data sets that are not published", faults)
	}
	return nil
}
