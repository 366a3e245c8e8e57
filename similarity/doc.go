// Package similarity answers: have we seen this workload before?
//
// The profile of an epoch becomes features, features become clusters of known
// workloads, and a new profile either belongs to one of them with enough
// confidence or is something new (Rocha, sections 6.3.3 to 6.3.5). What is known
// is kept as [Record]s, for each type of machine.
package similarity
