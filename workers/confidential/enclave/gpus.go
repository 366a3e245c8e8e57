package enclave

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

// graphics has each GPU of a machine sign a nonce of its own, by its number.
type graphics func(nonce func(number int) [32]byte) ([]evidence.GPU, error)

// GPUs are those of this machine, with their reports; the error says why there are none.
func GPUs(nonce func(number int) [32]byte) ([]evidence.GPU, error) {
	if others := fakeGPUs(); others != nil {
		return others(nonce)
	}
	driver, err := profiler.OpenGPUControl()
	if err != nil {
		return nil, err
	}
	defer driver.Close()
	tools, err := driver.Confidential()
	if err != nil {
		return nil, err
	}
	list := make([]evidence.GPU, driver.Count())
	for i := range list {
		list[i].DevTools = tools
		if list[i].Report, list[i].Chain, err = driver.Attest(i, nonce(i)); err != nil {
			return nil, fmt.Errorf("GPU %d shows no report: %w", i, err)
		}
	}
	return list, nil
}

// rules is the broker's policy, which says whether GPUs are looked at. Its id tells whether
// it is the one meant, so the broker is asked once.
func (e *Enclave) rules(ctx context.Context) (*policy.Policy, error) {
	e.mutex.Lock()
	known := e.known
	e.mutex.Unlock()
	if known != nil {
		return known, nil
	}
	var found json.RawMessage
	if err := e.call(ctx, http.MethodGet, "/v1/policy", nil, &found); err != nil {
		return nil, err
	}
	known, err := policy.Parse(found)
	if err == nil && known.ID() != e.options.Policy {
		err = evidence.Refuse("policy_changed", "the broker has the policy %s, not %s: --policy must name it", known.ID(), e.options.Policy)
	}
	if err != nil {
		return nil, retry.Local{Err: err}
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.known = known
	return known, nil
}

// look says at the start whether the machine has the GPUs that the policy requires, if the
// broker can be asked.
func (e *Enclave) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rules, err := e.rules(ctx)
	if err == nil {
		_, err = e.shown(ctx, func(int) (none [32]byte) { return none })
	}
	switch {
	case err == nil:
	case rules != nil && rules.GPU.Required:
		return fmt.Errorf("the policy requires GPUs that show reports, and there are none: %w", err)
	default:
		e.options.Logger.Warn("whether GPUs show reports is looked at again for the first trial", "error", err)
	}
	return nil
}

// shown are the GPUs, if the policy looks at them.
func (e *Enclave) shown(ctx context.Context, nonce func(number int) [32]byte) ([]evidence.GPU, error) {
	rules, err := e.rules(ctx)
	if err != nil || rules.GPU == nil {
		return nil, err
	}
	list, err := e.gpus(nonce)
	if err != nil {
		return nil, blind{err}
	}
	return list, nil
}

// blind is that no GPU shows a report.
type blind struct{ error }
