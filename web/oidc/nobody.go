package oidc

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
)

// Nobody stands for no provider.
type Nobody struct{}

var errNobody = problem.New(problem.NotFound, "this server knows no identity provider: an administrator makes tokens")

// Issuer is empty.
func (Nobody) Issuer() string { return "" }

// Start refuses.
func (Nobody) Start(context.Context, string) (string, access.Secret, error) {
	return "", "", errNobody
}

// Finish refuses.
func (Nobody) Finish(context.Context, string, access.Secret, string, string) (Person, error) {
	return Person{}, errNobody
}

// Device refuses.
func (Nobody) Device(context.Context) (protocol.DeviceSignIn, error) {
	return protocol.DeviceSignIn{}, errNobody
}

// Poll refuses.
func (Nobody) Poll(context.Context, string) (Person, bool, error) { return Person{}, false, errNobody }
