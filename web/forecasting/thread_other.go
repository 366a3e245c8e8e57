//go:build !linux

package forecasting

// stepBack does nothing: elsewhere a thread has no claim of its own.
func stepBack() {}
