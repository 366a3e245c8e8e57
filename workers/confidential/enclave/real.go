//go:build !fakeenclave

package enclave

// fake is a device that tests have: no program that is released contains it.
func fake() (sign device, tee string) { return nil, "" }

// fakeGPUs are likewise.
func fakeGPUs() graphics { return nil }
