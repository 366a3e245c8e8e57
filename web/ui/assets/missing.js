// The page for an address that has none: only the frame does something.
import { offerFrame } from "./frame.js";
import { linkState } from "./live.js";

offerFrame();
linkState("none");
