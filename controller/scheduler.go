package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"sextant/agent/api"
	"sextant/controller/schedulerpb"
)

// scheduler answers by gRPC what /v1/paths and /v1/elephants answer by HTTP. Messages and JSON have
// the same fields, and each becomes the other by its JSON.
type scheduler struct {
	schedulerpb.UnimplementedSchedulerServer
	controller *Controller
}

// schedulerServer is part of the handler of the API, whose listeners know who calls.
func (c *Controller) schedulerServer() http.Handler {
	server := grpc.NewServer()
	schedulerpb.RegisterSchedulerServer(server, &scheduler{controller: c})
	return server
}

// Ports is schedulerpb.SchedulerServer.
func (s *scheduler) Ports(ctx context.Context, q *schedulerpb.PathQuestion) (*schedulerpb.Steered,
	error) {
	return called(ctx, s, api.Read, q, &schedulerpb.Steered{}, s.controller.ports)
}

// Recover is schedulerpb.SchedulerServer.
func (s *scheduler) Recover(ctx context.Context, q *schedulerpb.PathQuestion) (
	*schedulerpb.Steered, error) {
	return called(ctx, s, api.Read, q, &schedulerpb.Steered{}, s.controller.recoverPath)
}

// Best is schedulerpb.SchedulerServer.
func (s *scheduler) Best(ctx context.Context, q *schedulerpb.PathQuestion) (
	*schedulerpb.SteeredList, error) {
	return called(ctx, s, api.Read, q, &schedulerpb.SteeredList{}, s.controller.bestPaths)
}

// Place is schedulerpb.SchedulerServer.
func (s *scheduler) Place(ctx context.Context, list *schedulerpb.PlacementList) (
	*schedulerpb.Placements, error) {
	return called(ctx, s, api.Operate, list, &schedulerpb.Placements{}, s.controller.putElephants)
}

// Placed is schedulerpb.SchedulerServer.
func (s *scheduler) Placed(ctx context.Context, q *schedulerpb.PlacedQuestion) (
	*schedulerpb.ElephantList, error) {
	return called(ctx, s, api.Read, q, &schedulerpb.ElephantList{}, s.controller.placed)
}

// Release is schedulerpb.SchedulerServer.
func (s *scheduler) Release(ctx context.Context, r *schedulerpb.Released) (*schedulerpb.Released,
	error) {
	return called(ctx, s, api.Operate, r, &schedulerpb.Released{}, s.controller.deleteElephants)
}

// called answers a call in the event loop.
func called[Q, A any, M proto.Message](ctx context.Context, s *scheduler, needs api.Permission,
	in proto.Message, out M, answer func(Q) (A, error)) (none M, err error) {
	if err := api.Require(ctx, needs); err != nil {
		return none, statusOf(err)
	}
	var q Q
	text, err := protojson.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, &q)
	}
	if err != nil {
		return none, status.Error(codes.InvalidArgument, err.Error())
	}
	a, err := answered(ctx, s.controller, q, answer)
	if err != nil {
		return none, statusOf(err)
	}
	if text, err = json.Marshal(a); err == nil {
		err = protojson.Unmarshal(text, out)
	}
	if err != nil {
		return none, status.Error(codes.Internal, fmt.Sprintf("answer: %v", err))
	}
	return out, nil
}

// statusOf is an error of the API as gRPC has it.
func statusOf(err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return status.FromContextError(err).Err()
	}
	code, known := map[api.Code]codes.Code{api.Invalid: codes.InvalidArgument,
		api.NotFound: codes.NotFound, api.Conflict: codes.FailedPrecondition,
		api.Forbidden: codes.PermissionDenied}[e.Code]
	if !known {
		code = codes.Internal
	}
	return status.Error(code, e.Message)
}
