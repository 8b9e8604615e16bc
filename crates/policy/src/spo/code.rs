//! TM12xx: resources of the security-profiles-operator.

tamis_diag::codes! { SPO;
    SPO_SYNTAX = "TM1201", "not valid YAML",
        "A resource of Kubernetes is YAML or JSON. A text that begins with a brace and a quotation mark is \
         parsed as strict JSON, any other as YAML 1.2. Common errors are tabs in the indentation, and a \
         colon in unquoted text.";
    SPO_DUPLICATE_KEY = "TM1202", "duplicate key",
        "A mapping has the same key twice. YAML parsers take one of the two or reject both; in a security \
         policy that hides one of them, so it is an error. Delete one.";
    SPO_YAML = "TM1203", "unsupported YAML",
        "Anchors, aliases, merge keys, tags and non-string keys are valid YAML, but they change the meaning \
         of a text: a reviewer sees one list of calls, and the parser another. Write the values out.";
    SPO_NESTING = "TM1204", "nested too deeply",
        "A resource has about six levels of nesting. The limit is far above that; it keeps hostile input \
         from exhausting the stack.";
    SPO_RESOURCE = "TM1205", "not one SeccompProfile",
        "A policy is one resource with `apiVersion: security-profiles-operator.x-k8s.io/v1` (or v1beta1, v1alpha1), \
         `kind: SeccompProfile` and the profile as `spec`. Resources of other kinds in the same file are \
         ignored. Of several profiles `--resource NAME` selects one by its `metadata.name`. The operator does not \
         install a profile with `disabled: true`.";
    SPO_BASE = "TM1206", "base profile not available",
        "The operator joins `syscalls` with those of the profile that `baseProfileName` names, a resource of the \
         cluster or, behind `oci://`, of a registry. tamis sees the file only. If calls are denied by \
         default, the filter of the file alone denies more than the deployed one; if they are allowed, it \
         would allow what the base denies, so that is an error. The operator writes the merged profile to \
         every node, as /var/lib/kubelet/seccomp/operator/NAME.json, an OCI profile that tamis accepts.";
    SPO_SPEC = "TM1207", "value rejected by the operator",
        "The schema of the resource does not allow the value, so the Kubernetes API server rejects the whole \
         resource: SCMP_ACT_NOTIFY cannot be the default action, because the supervisor could not start.";
}
