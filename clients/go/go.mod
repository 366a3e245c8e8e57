module github.com/tandem-tune/tandem/clients/go

go 1.26.0

require github.com/c-bata/goptuna v0.9.0
