package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// sharingRoutes are for how users share the workers.
func (s sharingAPI) sharingRoutes() []route {
	const quotaPath, reservations = prefix + "/quotas/{user}", prefix + "/reservations"
	return []route{
		{"GET", prefix + "/quotas", readers, 200, call, "list-quotas", "List the users' quotas with what their trials have; a user sees its own", handle(s.server, s.listQuotas), nil},
		{"GET", quotaPath, readers, 200, call, "get-quota", "Get a user's quota with what its trials have", handle(s.server, s.getQuota), nil},
		{"PUT", quotaPath, admins, 200, call, "set-quota", "Bound what a user has of the workers", handle(s.server, s.setQuota), nil},
		{"DELETE", quotaPath, admins, 204, call, "remove-quota", "Let a user have what there is", handle(s.server, s.removeQuota), nil},
		{"GET", reservations, readers, 200, call, "list-reservations", "List what is kept of the workers for somebody, by when it begins", handle(s.server, s.listReservations), nil},
		{"POST", reservations, admins, 201, call, "make-reservation", "Keep a worker, or some GPUs, for a user or a study from a time to a time", handle(s.server, ofBody(s.studies.Reserve)), nil},
		{"DELETE", reservations + "/{reservation}", admins, 204, call, "remove-reservation", "End a reservation before its time", handle(s.server, s.removeReservation), nil},
		{"POST", workerPath + "/drain", owners, 200, call, "drain-worker", "Give a worker no more trials, and let those that it runs go on elsewhere if that is asked for", handle(s.server, s.drainWorker), nil},
		{"DELETE", workerPath + "/drain", owners, 200, call, "undrain-worker", "Give a drained worker trials again", handle(s.server, s.undrainWorker), nil},
	}
}

type quotaList struct {
	Quotas []protocol.QuotaView `json:"quotas"`
}

func (s sharingAPI) listQuotas(ctx context.Context, _ *nothing) (*jsonAnswer[quotaList], error) {
	list, err := s.studies.Quotas(ctx)
	return answered(quotaList{Quotas: orEmpty(list)}, err)
}

// UserRef names a user in a path.
type UserRef struct {
	User string `path:"user" maxLength:"128" doc:"a user's name, or admin for the administrators"`
}

func (s sharingAPI) getQuota(ctx context.Context, input *UserRef) (*jsonAnswer[protocol.QuotaView], error) {
	return answered(s.studies.Quota(ctx, input.User))
}

type quotaInput struct {
	UserRef
	Content[protocol.Quota]
}

func (s sharingAPI) setQuota(ctx context.Context, input *quotaInput) (*jsonAnswer[protocol.QuotaView], error) {
	return answered(s.studies.SetQuota(ctx, input.User, input.Body))
}

func (s sharingAPI) removeQuota(ctx context.Context, input *UserRef) (*nothing, error) {
	return nil, s.studies.RemoveQuota(ctx, input.User)
}

type reservationList struct {
	Reservations []protocol.Reservation `json:"reservations"`
}

func (s sharingAPI) listReservations(ctx context.Context, _ *nothing) (*jsonAnswer[reservationList], error) {
	list, err := s.studies.Reservations(ctx)
	return answered(reservationList{Reservations: orEmpty(list)}, err)
}

// ReservationRef names a reservation in a path.
type ReservationRef struct {
	Reservation string `path:"reservation" maxLength:"64" doc:"the reservation's id, as the list shows it"`
}

func (s sharingAPI) removeReservation(ctx context.Context, input *ReservationRef) (*nothing, error) {
	return nil, s.studies.Unreserve(ctx, input.Reservation)
}

// NamedWorkerRef names workers in a path, by what people call them too.
type NamedWorkerRef struct {
	Worker string `path:"worker" maxLength:"128" doc:"the id that the worker registered with, or its name"`
}

type drainInput struct {
	NamedWorkerRef
	Content[protocol.DrainRequest]
}

func (s sharingAPI) drainWorker(ctx context.Context, input *drainInput) (*jsonAnswer[protocol.Drained], error) {
	return answered(s.studies.Drain(ctx, input.Worker, input.Body))
}

func (s sharingAPI) undrainWorker(ctx context.Context, input *NamedWorkerRef) (*jsonAnswer[protocol.Drained], error) {
	return answered(s.studies.Undrain(ctx, input.Worker))
}
