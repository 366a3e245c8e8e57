package protocol

import (
	"cmp"

	"github.com/tandem-tune/tandem/internal/problem"
)

// StatusOf is the HTTP status that carries a problem of the code, unless the
// case has one that says more. The server and the worker's socket for scripts
// answer alike.
func StatusOf(code problem.Code) int {
	return cmp.Or(map[problem.Code]int{
		problem.Invalid: 422, problem.KeyReused: 422, problem.NotFound: 404, problem.Conflict: 409, problem.LeaseLost: 409,
		problem.Exhausted: 429, problem.Unavailable: 503, problem.Unauthorized: 401, problem.Forbidden: 403,
	}[code], 500)
}

// The header of the answer to a heartbeat that the server could not take, and its
// value where the leases that it knows of the worker have a new term all the same.
const (
	LeasesHeader = "Tandem-Leases"
	LeasesKept   = "kept"
)

// Kept is the refusal of a heartbeat of a worker whose leases last all the same: the
// server lacks something and knows who asks, or there is none that could give them away.
type Kept struct{ Refusal error }

// Error returns the refusal's text.
func (k Kept) Error() string { return k.Refusal.Error() }

// Unwrap returns the refusal.
func (k Kept) Unwrap() error { return k.Refusal }
