package oidc

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

// Rules say which provider is asked, and whom it may let in.
type Rules struct {
	Issuer, Client string
	// Secret is the client's; empty for a public client.
	Secret access.Secret
	// UserClaim names the user: of "email" the part before the @.
	UserClaim string
	// GroupsClaim lists the groups of the user.
	GroupsClaim string
	// Domains and Groups let people in: by a verified e-mail address, and by a group.
	// Where both are given, both must hold. Without any, nobody comes in.
	Domains, Groups []string
}

// Check returns why the rules cannot be meant.
func (r Rules) Check() error {
	switch {
	case !secure(r.Issuer):
		return fmt.Errorf("--oidc-issuer (%s) must be an https address, or an http one of this machine", r.Issuer)
	case r.Client == "":
		return fmt.Errorf("--oidc-client must be the id that the provider %s knows this server by", r.Issuer)
	case len(r.Domains)+len(r.Groups) == 0:
		return fmt.Errorf("nobody could sign in with %s: give --oidc-allow-domain, --oidc-allow-group, or both", r.Issuer)
	}
	return nil
}

// Person is somebody whom the provider knows and the rules let in.
type Person struct {
	Issuer, Subject, User string
	// Groups are those of the provider that could be a group's here.
	Groups []string
}

// mostGroups bounds how many groups of a person are looked at.
const mostGroups = 200

// admit decides who may sign in with the claims, and under which name.
func (r Rules) admit(subject string, claims map[string]json.RawMessage) (Person, error) {
	text := func(name string) (value string) {
		_ = json.Unmarshal(claims[name], &value) // of another type is none
		return value
	}
	person, groups := Person{Issuer: r.Issuer, Subject: subject, User: text(r.UserClaim)}, []string{}
	if json.Unmarshal(claims[r.GroupsClaim], &groups) != nil {
		groups = nil
	}
	name, domain, address := strings.Cut(text("email"), "@")
	verified := string(claims["email_verified"]) == "true"
	refuse := func(reason string, values ...any) (Person, error) {
		return Person{}, problem.New(problem.Forbidden, "%s knows you, and this server does not let you in: %s", r.Issuer, fmt.Sprintf(reason, values...))
	}
	if (r.UserClaim == "email" || len(r.Domains) > 0) && !(address && verified) {
		return refuse("it takes an e-mail address that the provider has verified")
	}
	if len(r.Domains) > 0 && !slices.ContainsFunc(r.Domains, func(one string) bool { return strings.EqualFold(one, domain) }) {
		return refuse("addresses in %q are not allowed (--oidc-allow-domain)", domain)
	}
	if len(r.Groups) > 0 && !slices.ContainsFunc(groups, func(one string) bool { return slices.Contains(r.Groups, one) }) {
		return refuse("you are in none of the groups that are allowed (--oidc-allow-group)")
	}
	if r.UserClaim == "email" {
		person.User = name
	}
	if person.User = strings.ToLower(person.User); subject == "" || !access.IsUser(person.User) {
		return refuse("the claim %s (%q) names no user: a user has 1 to 64 lower-case letters, digits, . _ and -", r.UserClaim, person.User)
	}
	for _, one := range groups[:min(len(groups), mostGroups)] {
		if access.IsUser(one) {
			person.Groups = append(person.Groups, one)
		}
	}
	return person, nil
}
