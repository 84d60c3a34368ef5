package edge

// WatchDevices is role.DeviceWatcher: without the loop that the programs were loaded for, packets
// would go once.
func (e *Room) WatchDevices() {
	if e.Runs == nil {
		return
	}
	if !e.Runs.Program.LacksLoop() {
		if raised, err := e.Runs.Program.RaiseLoop(); err != nil {
			e.Log.Warn("the loop of copies is down, and can't be brought up; tried again soon",
				"error", err)
		} else if raised {
			e.Log.Warn("the loop of copies was down; it is brought up")
		}
		return
	}
	e.Log.Warn("the loop of copies was removed; it is made anew, with the edge's programs")
	e.Runs.Broken = true
	err := e.Reload()
	trouble := ""
	if err != nil {
		trouble = "copies go nowhere, so packets go once, as the interfaces srv6copy and " +
			"srv6copy-in can't be made anew: " + err.Error()
	}
	if trouble != e.loopless {
		e.loopless = trouble
		e.Rewarn()
	}
}
