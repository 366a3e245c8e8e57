module github.com/tandem-tune/tandem/scripts/gosec

go 1.26

// Later versions depend on modules that not every proxy serves.
require (
	github.com/securego/gosec/v2 v2.22.10
	golang.org/x/tools v0.38.0
)

require (
	github.com/ccojocar/zxcvbn-go v1.0.4 // indirect
	golang.org/x/mod v0.29.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
)
