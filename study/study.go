// Package study is the hub: what is being tuned, and what happens next?
//
// [Service] holds the use cases (create, lease, report, finish, promote,
// expire, recommend). Each is one decision by the pure packages below it and
// one [journal.Change] applied by a [journal.Store] in one transaction; no transaction is open
// while a search thinks. The package does no I/O of its own: storage, the clock
// and randomness come in through small interfaces, and it knows neither HTTP
// nor SQL.
//
// Its one invariant: what a caller was told has been stored, and a write under
// an old lease epoch changes nothing.
package study

import "github.com/tandem-tune/tandem/study/journal"

// Store keeps the studies, and everything that belongs to none.
type Store interface {
	journal.Store
	journal.SharedStore
}
