package forecasting

import "syscall"

// gentle is the niceness of the thread that learns.
var gentle = 15

// stepBack lets everything else go before the present thread. Where that is
// refused, it goes on as it is.
func stepBack() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, gentle) }
