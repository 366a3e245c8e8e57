package beside

import (
	"context"
	"sync"
	"time"
)

// unusedTime is how long a server without users waits for one.
const unusedTime = 5 * time.Second

// Users counts the programs on this machine that use a server.
type Users struct {
	mutex sync.Mutex
	count int
	ended bool
	// idle ends the server; nil: it does not end with its users.
	idle *time.Timer
}

// WhileUsed is a context that ends once there was no user for [unusedTime].
func (u *Users) WhileUsed(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.idle = time.AfterFunc(unusedTime, func() {
		u.mutex.Lock()
		defer u.mutex.Unlock()
		if u.count == 0 {
			u.ended = true
			cancel()
		}
	})
	return ctx
}

// Enter lets a user in; false: the server ends.
func (u *Users) Enter() bool {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if !u.ended {
		u.count++
	}
	return !u.ended
}

// Leave says that a user has gone.
func (u *Users) Leave() {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.count--; u.count == 0 && u.idle != nil {
		u.idle.Reset(unusedTime)
	}
}
