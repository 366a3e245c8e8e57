package flush

import (
	"maps"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
)

// Recording gathers the samples of one run. It is safe for concurrent use.
type Recording struct {
	mutex  sync.Mutex
	kept   series.Series
	epoch  int
	number int // of samples that were added
	sent   int // so many of them
}

// NewRecording begins with the epoch.
func NewRecording(epoch int) *Recording { return &Recording{epoch: epoch} }

// Add takes a sample that ends now. The watts are of the whole machine, by the method; an
// empty one says that they are not known.
func (r *Recording) Add(seconds float64, seen *trial.Profile, watts float64, method string) {
	if seen == nil {
		return
	}
	values := seen.Host
	maps.Copy(values, seen.Events)
	if method != "" {
		values[series.Watts] = trial.Float(watts)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.number == 0 {
		r.kept.Begin = time.Now().UTC().Add(-time.Duration(seconds * float64(time.Second))).Round(time.Millisecond)
	}
	if method != "" {
		r.kept.Method = method
	}
	r.kept.Add(seconds, r.epoch, values)
	r.number++
}

// Next says that an epoch was reported: later samples are of the next one.
func (r *Recording) Next(epoch int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.epoch = epoch
}

// unsent are all samples, packed, and how many there were; nil where all were sent.
func (r *Recording) unsent() ([]byte, int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.number == r.sent {
		return nil, 0, nil
	}
	packed, err := r.kept.Encode()
	return packed, r.number, err
}

func (r *Recording) taken(number int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.sent = number
}
