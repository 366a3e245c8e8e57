package access_test

import (
	"testing"

	"github.com/tandem-tune/tandem/study/access"
)

// What each caller may do with alice's study, by the role that groups give it and by
// what it asks for.
func TestWhoReachesAStudy(t *testing.T) {
	type decision struct{ exists, allowed bool }
	hidden, seen, done := decision{}, decision{true, false}, decision{true, true}
	owner, editor, viewer, none := access.RoleOwner, access.RoleEditor, access.RoleViewer, access.NoRole
	user := func(name string) access.Caller { return access.Caller{Owner: name, Sight: access.Own} }
	for _, c := range []struct {
		name   string
		caller access.Caller
		by     access.Role
		want   [3]decision // who asks to look, to steer, to own
	}{
		{"the program", access.Caller{}, none, [3]decision{done, done, done}},
		{"an administrator", access.Caller{Holder: access.Administrators}, none, [3]decision{done, done, done}},
		{"its owner", user("alice"), none, [3]decision{done, done, done}},
		{"its owner, who is a viewer of the group", user("alice"), viewer, [3]decision{done, done, done}},
		{"an editor", user("bob"), editor, [3]decision{done, done, seen}},
		{"a viewer", user("bob"), viewer, [3]decision{done, seen, seen}},
		{"a stranger", user("bob"), none, [3]decision{hidden, hidden, hidden}},
		{"nobody", access.Nobody(), none, [3]decision{hidden, hidden, hidden}},
		{"a reader with its link", access.Caller{Sight: access.Shared, Study: "s"}, none, [3]decision{done, done, done}}, // routes let it look only
		{"a reader with another link, whatever role", access.Caller{Sight: access.Shared, Study: "t"}, editor, [3]decision{hidden, hidden, hidden}},
	} {
		for i, asks := range []access.Role{viewer, editor, owner} {
			c.caller.Asks = asks
			if exists, allowed := c.caller.Reaches("s", "alice", c.by); (decision{exists, allowed}) != c.want[i] {
				t.Errorf("%s who asks as %s: exists %v, allowed %v, want %+v", c.name, asks, exists, allowed, c.want[i])
			}
		}
	}
	var zero access.Caller
	if zero.Asks != access.RoleOwner {
		t.Error("who says nothing asks for less than an owner may")
	}
	for name, want := range map[string]access.Role{"viewer": viewer, "editor": editor, "owner": none, "": none, "Editor": none} {
		if got := access.ParseRole(name); got != want {
			t.Errorf("the role %q is %s, want %s", name, got, want)
		}
	}
}
