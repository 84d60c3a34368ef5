package good

// Documented is documented.
func Documented() {}
