package good_test

type Helper struct{}
