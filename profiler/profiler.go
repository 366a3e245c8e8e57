// Package profiler answers: what did the hardware do while a trial trained, and
// what can this machine measure at all?
//
// A [Meter] gives the joules of a span of training; [Detect] lists what the
// machine can measure and control, and for everything it cannot, why not and
// what to do about it.
//
// Its one invariant: a number that comes from a model instead of a meter says
// so (its method starts with "estimate"), and a thing that cannot be measured is
// missing with a reason, never 0. The package reads the machine and changes
// nothing, but for [GPUControl], which is there for a worker that does; it knows
// neither trials nor the server.
package profiler
