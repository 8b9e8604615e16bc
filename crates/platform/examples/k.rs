use tamis_platform::*; use tamis_abi::{ActionKind,SeccompData}; use tamis_bpf::{Op,Test,Program};
struct F; impl Supervisor for F { fn call(&self,_t:&mut dyn Task,c:&SeccompData)->Answer{ eprintln!("asked {}",c.nr); Answer::Forward } }
fn main(){ let ops=[Op::LoadData(0),Op::branch(Test::Eq,231,0,1),Op::RetImm(ActionKind::Notify.ret()),Op::RetImm(ActionKind::Allow.ret())];
let f=Program::new(ops.map(Into::into).to_vec(), tamis_kernel::NATIVE_ENDIAN).unwrap();
let mut a=std::env::args_os().skip(1); let p=by_name("kvm").unwrap(); 
println!("{:?}",p.probe());
let g=Guest{program:a.next().unwrap(),args:a.collect(),filter:&f,has_results:false};
println!("{:?}",p.run(&g,&F,&Options::default()));}
