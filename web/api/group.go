package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/guard"
)

// groupRoutes are the routes of groups of users.
func (s sharingAPI) groupRoutes() []route {
	const groupPath = prefix + "/groups/{group}"
	return []route{
		{"GET", prefix + "/groups", guard.Readers, 200, guard.Call, "list-groups", "List the groups of users by name; a user sees those that it is in", handle(s.server, s.listGroups), nil},
		{"PUT", groupPath, guard.Admins, 200, guard.Call, "set-group", "Make a group of users, or replace it", handle(s.server, s.setGroup), nil},
		{"DELETE", groupPath, guard.Admins, 204, guard.Call, "remove-group", "Remove a group; what was shared with it is so no longer", handle(s.server, remove[GroupRef](s.studies.RemoveGroup)), nil},
		{"PUT", studyPath + "/groups", guard.Owners, 200, guard.Call, "share-study", "Share a study with these groups, and no others", handle(s.server, s.shareStudy), nil},
		{"PUT", studyPath + "/owner", guard.Owners, 200, guard.Call, "transfer-study", "Give a study to another user", handle(s.server, s.transferStudy), nil},
	}
}

type groupList struct {
	Groups []protocol.UserGroup `json:"groups"`
}

func (s sharingAPI) listGroups(ctx context.Context, _ *nothing) (*jsonAnswer[groupList], error) {
	list, err := s.studies.Groups(ctx)
	return answered(groupList{Groups: list}, err)
}

// GroupRef names a group in a path.
type GroupRef struct {
	Group string `path:"group" maxLength:"64" doc:"the group's name: lower-case letters, digits, . _ and -"`
}

type groupInput struct {
	GroupRef
	Content[protocol.UserGroupRequest]
}

func (s sharingAPI) setGroup(ctx context.Context, input *groupInput) (*jsonAnswer[protocol.UserGroup], error) {
	return answered(s.studies.SetGroup(ctx, input.Group, input.Body))
}

type shareInput struct {
	StudyRef
	Content[protocol.Sharing]
}

func (s sharingAPI) shareStudy(ctx context.Context, input *shareInput) (*jsonAnswer[protocol.Sharing], error) {
	return answered(s.studies.Share(ctx, input.Study, input.Body))
}

type transferInput struct {
	StudyRef
	Content[protocol.Ownership]
}

func (s sharingAPI) transferStudy(ctx context.Context, input *transferInput) (*jsonAnswer[protocol.StudyView], error) {
	before, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	view, err := s.studies.Transfer(ctx, before.ID, input.Body)
	if err == nil {
		s.ReportAudit(ctx, s.AuditMade(ctx, "study "+view.ID, before.Owner+":"+before.Name+" to "+view.Owner+":"+view.Name))
	}
	return answered(view, err)
}
