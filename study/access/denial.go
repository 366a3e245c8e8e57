package access

import "context"

// callerKey is the context key of the caller.
type callerKey struct{}

// WithCaller makes the use case called with the context act for the caller.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf is the caller of a use case; the program itself without one.
func CallerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}

// denial is an error that hides from a caller what there is.
type denial struct{ told error }

// Deny hides from a caller what there is: it is told the error.
func Deny(told error) error { return denial{told} }

// Error returns what the caller is told.
func (d denial) Error() string { return d.told.Error() }

// Unwrap returns what the caller is told.
func (d denial) Unwrap() error { return d.told }

// Denied reports whether the error hides from its caller something that there
// is: it reads as if there were nothing.
func Denied(err error) bool {
	for err != nil {
		if _, ok := err.(denial); ok {
			return true
		}
		unwrapping, ok := err.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		err = unwrapping.Unwrap()
	}
	return false
}
