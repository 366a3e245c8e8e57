module github.com/tandem-tune/tandem/clients/go

go 1.26.0
