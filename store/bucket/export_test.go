package bucket

// TidyAt is [Store.Tidy] at another time.
var TidyAt = (*Store).tidy
