package scenarios

// qpFields are the attributes of a reliable connection that software sets with
// ibv_modify_qp, read where packets may be lost or refused, and what else only
// findings hang on.
var qpFields = []Field{
	{Key: "path.cq_depth", Kind: Count, Optional: true, Min: "1", Max: "4194304", Text: "CQEs that a CQ of the CPU holds; absent: as many as can come", Used: "model/path"},
	{Key: "path.proxy.slot_check", Kind: Bool, Default: "true", Text: "a GPU thread looks whether its slot of the ring is free", Used: "model/path"},
	{Key: "cluster.fabric.adaptive_routing", Kind: Bool, Default: "false", Text: "packets of one connection may take different ways; decides findings only, the model has one way", Used: "testbed"},
	{Key: "path.qp.timeout", Kind: Count, Default: "14", Max: "31", Text: "ibv_qp_attr.timeout: 4.096us x 2^n until the oldest packet without an answer is sent again; 0: never", Used: "model/nic"},
	{Key: "path.qp.retry_cnt", Kind: Count, Default: "7", Max: "7", Text: "ibv_qp_attr.retry_cnt: retries of one packet before its queue is in error", Used: "model/nic"},
	{Key: "path.qp.rnr_retry", Kind: Count, Default: "7", Max: "7", Text: "ibv_qp_attr.rnr_retry: the same where the receiver is not ready; 7: for ever", Used: "model/nic"},
	{Key: "path.qp.min_rnr_timer", Kind: Duration, Default: "640us", Min: "10us", Max: "656ms", Text: "ibv_qp_attr.min_rnr_timer as a time: until a message is tried again whose receiver was not ready", Used: "model/nic"},
}
