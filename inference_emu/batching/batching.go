// Package batching decides how requests for inference are put together: how
// many samples at most go into one batch, and how long the first of them waits
// for others (figure 7.6 of Rocha's thesis, section 7.3.4).
//
// What it knows of the model is a [Curve], the seconds of one inference by
// batch size. [Choose] finds the policy of a load, [BestSplit] divides queries of
// many samples, and [Simulate] plays a policy against [Arrivals] event by event.
//
// All times are seconds, all energies joules. Everything is deterministic for a
// seed. What comes out is an estimate: it is as good as the curve.
package batching
