//! TM12xx: resources of the security-profiles-operator.

codes! { SPO;
    SPO_SYNTAX = "TM1201", "not valid YAML",
        "A resource of Kubernetes is YAML or JSON. A text that begins with a brace and a quotation mark is read \
         as strict JSON, any other as YAML 1.2. Common mistakes are tabs where the indentation is, and a colon \
         within text that has no quotation marks.";
    SPO_DUPLICATE_KEY = "TM1202", "duplicate key",
        "A mapping has the same key twice. Readers of YAML take one of the two or refuse both; in a security \
         policy that hides one of them, so it is an error. Delete one.";
    SPO_YAML = "TM1203", "YAML that is not read",
        "Anchors, aliases, merge keys, tags and keys that are no text are YAML, but what they make of a text is \
         not what stands there: a reviewer sees one list of calls and another is meant. Write it out.";
    SPO_NESTING = "TM1204", "nested too deeply",
        "A resource is about six levels deep. Text that is nested much deeper is not one; the limit keeps \
         hostile input from exhausting the stack.";
    SPO_RESOURCE = "TM1205", "not one SeccompProfile",
        "A policy is one resource with `apiVersion: security-profiles-operator.x-k8s.io/v1` (or v1beta1, v1alpha1), \
         `kind: SeccompProfile` and the profile as `spec`. Resources of other kinds in the same file are passed \
         over. With several profiles it would be a guess which is meant: give each a file of its own. The operator \
         does not install a profile with `disabled: true`.";
    SPO_BASE = "TM1206", "what the base profile adds is not known",
        "The operator joins `syscalls` with those of the profile that `baseProfileName` names, a resource of the \
         cluster or, behind `oci://`, of a registry. tamis sees the file only. If calls are denied by default, the \
         filter of the file alone denies more than the deployed one; if they are allowed, it would allow what the \
         base denies, so that is an error. The operator writes the joined profile to every node, as \
         /var/lib/kubelet/seccomp/operator/NAME.json: that is an OCI profile which tamis reads.";
    SPO_SPEC = "TM1207", "value that the operator refuses",
        "The schema of the resource does not take the value, so the server of Kubernetes refuses the whole resource: \
         SCMP_ACT_NOTIFY is no default action, as the supervisor could not even start.";
}
