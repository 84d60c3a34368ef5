package agent

type edgeRole struct{}

type edgeRoom struct {
	runs   *edgeRole
	beside *hostRoom // a role may work with another one
}

func newEdgeRoom() *edgeRoom { return &edgeRoom{} }
