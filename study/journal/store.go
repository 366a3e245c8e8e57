package journal

import (
	"context"
	"encoding/json"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/trial"
)

// Guard is what must still be true of a stored trial for a write to happen.
type Guard struct {
	LeaseEpoch trial.LeaseEpoch
	State      trial.State
}

// TrialWrite is one trial to insert (no Guard) or to replace.
type TrialWrite struct {
	Trial trial.Trial
	Guard *Guard
}

// Position is a place in a study's log.
type Position struct {
	Study    string
	Sequence int64
}

// MaxRecords is how many records of one type of machine a store keeps: beyond
// it, the oldest go. It bounds what every look-up reads.
const MaxRecords = groundtruth.MaxRecords

// MaxArchitectures is how many architectures a store keeps: beyond it, those
// that were not seen for longest go.
const MaxArchitectures = 2000

// PoolEntry is one thing that is kept of the pool of workers, such as a user's
// quota: a JSON document by its kind and name.
type PoolEntry struct {
	Kind, Name string
	Document   json.RawMessage
}

// Change is everything one use case writes. It is applied whole or not at all.
type Change struct {
	// Behind, if set, is the newest event that the study must have for the
	// change to be made. So a change that was decided on what another one
	// would write is refused when that one was.
	Behind *Position
	// Insert adds a study. A reference that another study has is a conflict.
	Insert *Study
	// Update replaces a study's Status, Reason, Elapsed, Since, Finished,
	// Annotation and Changes.
	Update *Study
	// Transfer has the update replace its Owner and its name, too. A reference that
	// another study has is a conflict.
	Transfer bool
	// Delete removes a study with everything that belongs to it.
	Delete string
	Trials []TrialWrite
	// Reports are inserted; one that is there already is left as it is.
	Reports []trial.Report
	// Events are appended. A sequence that is taken is a conflict.
	Events   []Event
	Snapshot *Snapshot
	// Forget, if set, removes what was learned on the type of machine; on every
	// type where it is empty.
	Forget *string
	// Records are written by ID: one that is there is replaced, whatever its
	// time. A type of machine that then has more than MaxRecords loses the
	// oldest, by Updated and ID. Records belong to no study: deleting one keeps
	// what it taught.
	Records []similarity.Record
	// Architectures are written by key: one that is there is replaced. Those
	// seen longest ago (by Seen, then Key) go when there are more than
	// MaxArchitectures. They belong to no study.
	Architectures []emu.Architecture
	// Pool is written by kind and name: an entry that is there is replaced, and one
	// without a document is removed, if it is there. Entries belong to no study.
	Pool []PoolEntry
	// Receipt is inserted. A key that is there already is a conflict.
	Receipt *Receipt
}

// Store keeps studies, and applies every change. Implementations pass store/storetest.
//
// Errors are problem.Error: not_found for a missing study, trial, snapshot,
// architecture or receipt; conflict for a name, sequence or key that is taken; lease_lost for
// a Guard that no longer holds; unavailable for a change that is not Behind
// the newest event. Anything else means that the store can no longer be
// trusted with a write.
type Store interface {
	// Apply makes the change durable before it returns: when it returns nil,
	// the change survives a power loss; when it returns an error of the kinds
	// above, nothing of it was written.
	Apply(ctx context.Context, change Change) error
	// Submit is Apply without the waiting: the outcome is settled with what
	// Apply would have returned. Changes take effect in the order in which they
	// were handed in. The change belongs to the store from then on.
	Submit(ctx context.Context, change Change) *Outcome

	// Study finds a study by its id or its reference.
	Study(ctx context.Context, ref string) (Study, error)
	// Studies returns all studies, the newest first.
	Studies(ctx context.Context) ([]Study, error)
	// Trials returns a study's trials by number.
	Trials(ctx context.Context, study string) ([]trial.Trial, error)
	Trial(ctx context.Context, id trial.ID) (trial.Trial, error)
	// Reports returns a trial's reports in the order they were accepted.
	Reports(ctx context.Context, id trial.ID) ([]trial.Report, error)
	// Events returns up to limit events of the study with sequence > after,
	// in order.
	Events(ctx context.Context, study string, after int64, limit int) ([]Event, error)
	// TrialEvents returns every event of one trial, in order.
	TrialEvents(ctx context.Context, study string, id trial.ID) ([]Event, error)
	// Snapshot returns the study's newest snapshot.
	Snapshot(ctx context.Context, study string) (Snapshot, error)
	// Receipt returns the answer stored under the key.
	Receipt(ctx context.Context, key string) (Receipt, error)
}

// SharedStore keeps the objects that belong to no study: the ground truth,
// architectures and the pool's entries. Store.Apply writes them. The errors are those
// of Store.
type SharedStore interface {
	// Records returns the ground truth of the type of machine, or of all types
	// where it is empty, the oldest first (by Updated, then ID).
	Records(ctx context.Context, machine string) ([]similarity.Record, error)
	// RecordTypes returns the types of machine that there are records of, sorted.
	RecordTypes(ctx context.Context) ([]string, error)
	// Architecture returns the architecture with the key.
	Architecture(ctx context.Context, key string) (emu.Architecture, error)
	// Architectures returns up to limit of them, the newest first (by Seen, then
	// Key).
	Architectures(ctx context.Context, limit int) ([]emu.Architecture, error)
	// PoolEntries returns all entries of the kind, by name.
	PoolEntries(ctx context.Context, kind string) ([]PoolEntry, error)
}

// LogStore keeps the trials' logs. A log is a convenience: a lost tail is not
// a lost result, so appends are not guarded beyond the lease epoch.
type LogStore interface {
	// AppendLog adds text at the offset of the lease's log. Text that is there
	// already is skipped; what would grow the trial's log beyond its cap is
	// dropped and said so at its end.
	AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error
	// Log returns the trial's log, the leases in order.
	Log(ctx context.Context, id trial.ID) (string, error)
}
