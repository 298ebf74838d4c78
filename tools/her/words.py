"""Words that fill the patterns of `constructions`: a name for each slot, separated by commas."""

_LISTS = {
    "who": "I,we,they,he,she,Tom,nobody,someone,you,the <role>,the <role>,my <kin>,the <group>,"
    "his <kin>,a <role>,Maria,everyone,the <thing>,the <things>,this,that,it,the <noun>,"
    "he had never,they would have,we never,she always,people,critics,the <nouns>",
    "they": "they,he,she,we,I,it,you,the <role>,the <things>,people,nobody,Peter",
    "them": "him,me,you,them,us",
    "my": "my,his,your,their,our,my,his",
    "np": "the <thing>,a <thing>,the <things>,my <kin>,the <role>,some <things>,a <adj> <thing>,"
    "two <things>,it,them,this,all the <things>,Anna,the <adj> <things>,no <things>",
    "stop": ".,.,.,.,!,?, ,;",
    "tail": " in the <thing>., on <day>., at the <thing>., with <np>., for <np>., after <np>.,"
    " from <np>., when <they> <did>., as <they> <did>., and <did>., because <they> <did>.,"
    " before <they> <did>., by <np>., to <np>., that <day>., during the <thing>.,"
    "; <they> <did>., (again)., while <they> <did>., over <np>., until <day>., in <year>.",
    "tail2": "in the <thing>,on the <thing>,with <np>,for <np>,at <name_>'s",
    "day": "Monday,Tuesday,Friday,Sunday,day,evening,Christmas,June,March,night",
    "year": "1962,1987,2003,2011,2019,1948,1999",
    "digits": "20,50,300,1000,12,75,200,10",
    "num": "two,three,four,five,six,ten,twelve,seven,two,three",
    "ordinal": "first,second,third,last,next,final,fourth",
    "units": "hours,years,days,weeks,months,minutes",
    "det": "a,the,a,the,an,some,this,that,another,any,no,many,every,more,several,all the,one,"
    "these,those,a few,a lot of,enough,much,plenty of,what,each,both",
    "many": "many,few,several,numerous,various,other,remaining,only,many",
    "degree": "very,most,more,rather,quite,once,then,still,already,now,ever,always,often,never,"
    "too,long,much,less,least,so far,soon,previously,not so,almost,almost too,all too,far more,"
    "even,most,more,sometimes,just",
    "thing": "ring,ticket,chair,prize,contract,house,letter,phone,map,coat,cup,key,box,bag,"
    "guitar,loan,job,role,seat,lamp,kiss,present,award,question,chance,reason,hint,room,bed,"
    "newspaper,bottle,cake,blanket,picture,lesson,warning,smile,sandwich,start,title,fortune",
    "things": "rings,tickets,chairs,prizes,contracts,letters,phones,maps,coats,keys,boxes,bags,"
    "roses,jobs,roles,seats,presents,awards,questions,chances,pounds,dollars,pictures,books,"
    "lessons,warnings,sandwiches,biscuits,emails,records,points,sweets,shares,coins",
    "gifts": "money,advice,credit,permission,access,support,power,time,bread,coffee,medicine,"
    "shelter,hope,strength,courage,comfort,pleasure,joy,trouble,attention,respect,praise,luck,"
    "roses,chocolates,presents,tickets,letters,sweets,directions,instructions,nightmares,"
    "headaches,orders,pictures,clothes,messages,lunch,dinner,breakfast,soup,poems,fame,wine,"
    "recognition,confidence,hell,back pay,notice,room,space,freedom,citizenship,compensation,"
    "thousands,millions,something,nothing,everything,anything,lots of <things>,fresh <gifts>",
    "language": "German,Latin,English,Italian,Greek,Arabic,Russian,Japanese,Hindi,Dutch,algebra,"
    "piano,physics,dancing,music,manners",
    "noun": "car,house,voice,face,idea,book,job,garden,story,decision,plan,wedding,office,desk,"
    "boat,kitchen,shoulder,health,money,salary,budget,team,dream,film,painting,research,essay,"
    "education,childhood,life,death,family,company,band,school,ability,sense of humour,beauty,"
    "theory,argument,performance,temper,hat,dress,shoes,memory,legacy,fate,title,degree,debut,"
    "village,country,accent,career,marriage,case,apology,behaviour,success,failure,influence,"
    "knowledge,style,poetry,music,role,tenure,absence,presence,arrival,return,diary,patience,"
    "<kin>,<kin>,<kin>,<body>,<body>,weight,age,height,illness,recovery,lawsuit,invention,"
    "confession,testimony,laptop,account,signature,record,victory,defeat,novel,portrait",
    "nouns": "cars,ideas,books,jobs,stories,decisions,plans,shoes,dreams,films,paintings,essays,"
    "<kins>,<kins>,novels,records,songs,results,skills,rivals,fans,followers,critics,views,"
    "opinions,beliefs,clothes,hands,eyes,debts,poems,lectures,experiments,victories,belongings,"
    "pupils,clients,patients,achievements,duties,feelings,tears,goals,signatures,families",
    "kin": "mother,father,sister,brother,son,daughter,husband,wife,uncle,aunt,cousin,boss,niece,"
    "friend,lawyer,doctor,teacher,neighbour,partner,boyfriend,fiancé,agent,coach,assistant,"
    "grandfather,grandmother,colleague,rival,nephew,roommate,team,class,company,dog,cat,child,"
    "baby,manager,client,employer,secretary,driver",
    "kins": "sisters,brothers,sons,daughters,children,kids,parents,cousins,friends,lawyers,"
    "doctors,teachers,neighbours,students,fans,colleagues,employees,patients,clients,dogs",
    "pet": "dog,cat,horse,rabbit,puppy,kids,guests,children,brother",
    "body": "hand,hands,eyes,hair,face,arm,leg,knee,foot,head,heart,shoulders,nose,wrist,voice,"
    "cheeks,throat,stomach,skin,lips,neck,fingers,ankle",
    "sided": "left,right,left,right,upper,lower,injured,broken,other",
    "odd": "past,back,right to <verb>,home,will,well-being,present,inside knowledge,like,"
    "upbringing,outside interests,past work,home town,back door,second home,better half,all,best,"
    "worst,utmost,everything,say,turn,share,part,side,own,elders,betters,might,past and present,"
    "near miss,up-and-coming band,day off,night out,cover,down jacket,best friend,"
    "right to privacy,well paid job,overseas tour,upstairs room,front teeth,then <kin>,"
    "late <kin>,former <kin>",
    "paper": "claim,request,proposal,excuse,offer,promise,theory,argument,motive,version,lie,bill,"
    "version of events,denial,statement,candidacy,complaint,petition,explanation,report,demand",
    "joined": "well-known,long-awaited,then-new,self-titled,much-loved,up-and-coming,so-called,"
    "first-ever,ill-fated,now-defunct,part-time,award-winning,best-selling,twenty-year,half-eaten",
    "whim": "word,need,wish,thought,demand,breath,mood,action,mistake,order,desire,gesture",
    "triumph": "triumph,disaster,joke,success,scandal,masterpiece,disgrace,surprise,waste of time",
    "role": "president,director,captain,chair,queen,leader,manager,secretary,editor,chief,"
    "minister,treasurer,mayor,ambassador,champion,head,guardian,heir,chancellor,principal,governor,"
    "professor,teacher,doctor,judge,lawyer,nurse,guard,woman,man,girl,boy,stranger,king,dean",
    "group": "committee,police,army,company,board,court,club,team,press,school,government,jury",
    "name_": "Anna,Maria,Tom,Peter,Lucky,Mary,Paris,Dr. Lee,Mr. Hall,Jane Smith,Queenie,Boston",
    "name0": "name,age,number,address,advice,permission,forgiveness,weight",
    "gave": "gave,give,gives,has given,offered,offers,lent,handed,showed,sent,promised,owed,owes,"
    "brought,awarded,granted,paid,passed,threw,fed,told,taught,wished,denied,left,allowed,assigned,"
    "guaranteed,mailed,posted,slipped,loaned,gave,gave,giving,to give,served,dealt,spared,sent,"
    "refused,tossed,emailed,texted,earned,cost,won,sends,brings",
    "bought": "bought,made,cooked,baked,built,found,got,wrote,read,sang,played,poured,fetched,"
    "ordered,saved,knitted,drew,painted,buys,gets,reserved,prepared,booked,fixed,bet,charged,fined",
    "told": "told,tells,tell,asked,asks,showed,reminded,assured,warned,informed,taught,convinced,"
    "persuaded,promised,advised,notified,telling,reassured",
    "conj": "that,that,what,how,why,where,when,if,whether,which of them",
    "conj2": "and,but,because,when,while,if,although,so,before,after,until,since,as,though,where,"
    "once,or,unless,who,whenever,which",
    "wh": "how,what,where,when,why,which",
    "urge": "asked,told,urged,begged,ordered,forced,allowed,persuaded,invited,encouraged,wanted,"
    "expected,advised,required,taught,helped,enabled,caused,convinced,reminded,permitted,warned,"
    "wants,asks,needs,pressed,compelled,tempted,led,inspired,would like,prefer,got,challenged",
    "make": "made,makes,make,let,lets,had,making,letting,to make,to let,has made,will let,helped",
    "help": "helped,help,helps,helping,to help,has helped,let,made",
    "see": "saw,see,sees,heard,hear,watched,watch,noticed,felt,seen,watching,hearing,to see,"
    "to hear,observed,witnessed,spotted,overheard,filmed,glimpsed",
    "keep": "kept,keep,found,left,caught,leave,leaves,keeps,finds,pictured,photographed,discovered,"
    "spotted,had,got,sent,set,saw,heard",
    "render": "made,makes,found,left,drove,kept,rendered,turned,got,proved,making,leaves,keeps,"
    "drives,has made,to make,considered,declared,thought,pronounced,held,painted,set,deemed,judged",
    "think": "thought,considered,found,believed,judged,deemed,think,consider,finds,called,calls,"
    "declared,reckoned,imagined,pronounced,ruled",
    "name": "named,elected,appointed,made,crowned,called,declared,voted,chose,dubbed,"
    "considered,designated,nominated,calls,christened,nicknamed,labelled,proclaimed,anointed",
    "person": "met,loved,married,hugged,kissed,thanked,praised,greeted,called,visited,followed,"
    "joined,treated,missed,blamed,accused,arrested,hired,fired,invited,helped,saw,knew,hated,"
    "admired,attacked,defended,supported,rescued,saved,taught,trusted,ignored,contacted,phoned,"
    "questioned,insulted,harassed,raped,killed,shot,hit,hurt,beat,examined,interviewed,replaced,"
    "welcomed,escorted,approached,left,watched,noticed,recognised,remembered,forgot,needed,wanted,"
    "liked,likes,loves,knows,hates,respects,meets,surprised,annoyed,pleased,scared,worried,"
    "inspired,bothered,amused,impressed,shocked,raised,adopted,dated,divorced,abandoned,betrayed,"
    "protected,forgave,punished,rewarded,promoted,sued,robbed,served,drove,touched,chased,caught,"
    "will see,to meet,to see,to help,can call,must tell,dating,marrying,asking,visit,love,hate",
    "base": "see,meet,call,love,trust,help,blame,tell,invite,know,believe,visit,remember,hire,like",
    "base_": "Call,Ask,Tell,Help,Follow,Trust,Watch,Stop,Thank,Invite,Leave,Believe,Meet,Visit",
    "aux_": "Did,Do,Could,Would,Can,Will,Should,Does,Have,Has,Must",
    "lift": "picked,turned,took,let,brought,left,sent,threw,carried,dragged,pulled,pushed,lifted,"
    "put,kicked,drove,walked,led,followed,called,held,kept,knocked,cheered,gave,talked,woke,set,"
    "cut,shut,take,bring,let,send,put,sweep,swept,flew,rushed,invited,moved",
    "particle": "up,down,in,out,off,away,back,aside,over,through,around,along,behind,apart,inside,"
    "outside,forward,under,together,ahead,across,upstairs,on,about",
    "did_to": "lost,found,saw,sold,took,kept,read,knew,left,used,loved,wrote,opened,closed,moved,"
    "broke,hurt,changed,ruined,ignored,mentioned,praised,rejected,accepted,criticised,discussed,"
    "published,finished,began,ended,bought,destroyed,improved,damaged,described,admired,copied,"
    "stole,borrowed,repaired,washed,sang,recorded,showed,explained,signed,wore,shook,held,raised,"
    "shared,watched,heard,studied,remembered,forgot,visited,celebrated,questioned,followed,met,"
    "completed,earned,won,started,continued,pursued,spent,made,received,resumed,questioned,cut,"
    "doubted,wants,likes,has,had,reads,needs,loves,using,losing,to see,to find,to keep,to lose,"
    "challenged,inherited,packed,covered,touched,edited,directed,examined,helped,supported,hated",
    "like": "liked,loved,enjoyed,hated,admired,remembered,recalled,mentioned,disliked,resented,"
    "feared,appreciated,missed,regretted,discussed,described,praised,encouraged,minded,prevented,"
    "opposed,suggested,anticipated,dreaded,imagined,understood,welcomed,criticised,tolerated,"
    "enjoys,likes,loves,recalls,mention,appreciates,ignored,denied,proposed,justified,excused",
    "of": "of,about,of,about,by,from,despite,without,before,after,because of,in favour of,against,"
    "due to,on,at,over,at the thought of,to,with,for,instead of,in spite of,upon",
    "prep": "to,with,for,at,by,from,about,of,near,behind,beside,after,before,without,around,"
    "towards,against,on,over,between them and,because of,next to,past,under,like,among,into",
    "Prep": "To,With,For,Beside,Behind,Near,Around,Before,After,Without,Like,Unlike,Above,"
    "According to,Next to,In front of,Because of,Thanks to,Opposite,Among,In,On,At,From,About",
    "was": "was,is,were,are,has been,had been,will be,would be,seems,became,remained,can be",
    "stood": "stood,sat,lay,came,was,were,walked,hung,is,went,appeared,waited",
    "did": "left,ran,won,lost,laughed,waited,failed,worked,came back,went home,disappeared,died,"
    "knew <np>,said nothing,saw <np>,moved on,changed,helped,grew,wrote,told <them>,paid,"
    "agreed,refused,had <np>,felt <adj>,thought of <np>,took <np>,made <np>,fell,stopped,"
    "noticed,gave up,says <np>,know,say,agree,loved <np>,brought <np>,surprised <name_>",
    "verb": "go,come,leave,stay,dive,pray,eat,sleep,breathe,cry,laugh,think,feel,know,see,find,"
    "get,become,write,learn,understand,choose,decide,wait,grow,live,die,lose,win,forget,remember,"
    "believe,enter,escape,explain,realise,relax,pay,carry,keep,put,take,tell,sit,lie,stand,fall,"
    "run,walk,play,work,finish,accept,climb,open,close,shine,win,survive,succeed,recover,prepare,"
    "build,earn,buy,sell,give,say,hear,meet,join,cross,forgive,settle,smile,vanish,suffer,obey,"
    "apologise,quit,wonder,shiver,tremble,blush,panic,resign,travel,cope,be,do it,have <np>,make,"
    "read,study,drive,fight,raise,pass,reach,solve,prove,deal with <np>,look after <np>",
    "verbnoun": "run,walk,work,play,dance,cry,laugh,smile,talk,fall,look,answer,call,help,drink,"
    "fight,study,paint,cook,dream,sleep,sound,move,rest,return,drive,report,jump,visit,guess,"
    "scream,sigh,swim,change,win,smoke,vote,stand,search,paint,love,worry,turn,start,shake",
    "ing": "singing,leaving,winning,smoking,running,crying,talking,working,being there,cheating,"
    "playing,dancing,driving,writing,reading,cooking,training,lying,sleeping,laughing,walking,"
    "swimming,drinking,painting,teaching,joining,marrying,moving,taking,making,coming,going,"
    "getting,losing,telling,asking,finding,helping,knowing,arriving,returning,quitting,speaking,"
    "snoring,shouting,complaining,waiting,hoping,sitting,standing,looking,acting,fighting,paying",
    "done": "written,worded,used,damaged,designed,made,built,painted,told,closed,opened,paid,"
    "loved,admired,published,trained,dressed,finished,awaited,known,cited,read,restored,hidden,"
    "earned,chosen,planned,forgotten,treated,guarded,kept,educated,broken,tied,ruined,acclaimed",
    "adj": "happy,old,new,small,famous,young,sad,angry,brave,strong,great,tall,honest,ill,rich,"
    "poor,calm,busy,clever,stupid,innocent,guilty,attractive,beautiful,good,long,short,big,tired,"
    "quiet,kind,difficult,red,dear,early,personal,successful,political,important,only,odd,"
    "responsible,dangerous,remarkable,popular,shy,nervous,jealous,proud,wonderful,boring,weird,"
    "lonely,friendly,elderly,lovely,silly,ugly,amazing,charming,moving,annoying,interesting,"
    "talented,beloved,determined,confused,worried,excited,unusual,brilliant,public,local,safe",
    "pred": "alone,asleep,awake,alive,afraid,ashamed,aware of <np>,speechless,homeless,unconscious,"
    "crazy,mad,sick,dead,happy,breathless,pregnant,in tears,at home,out of work,unable to <verb>,"
    "ready,able to <verb>,free,glad,worse,better,furious,uneasy,wrong,right,stranded,unharmed,"
    "insane,blind,deaf,warm,hungry,safe,late,sane,penniless,helpless,powerless,bedridden,ill",
    "ly": "kindly,badly,quickly,warmly,politely,rudely,terribly,deeply,gently,quietly,secretly,"
    "carefully,coldly,openly,firmly,slowly,harshly,unfairly,extremely,highly,widely,newly,recently,"
    "slightly,hastily,poorly,beautifully,carelessly,strangely,suddenly,truly,sincerely,surprisingly,"
    "greatly,nearly,barely,lightly,lovingly,privately,critically,fairly,really,incredibly,equally",
    "adv": "really,very,so,too,rather,quite,completely,extremely,truly,utterly,pretty,more,totally",
    "when": "yesterday,today,tomorrow,tonight,now,then,again,once,twice,often,sometimes,soon,later,"
    "last night,last week,last year,last summer,this morning,this week,this afternoon,next week,"
    "next month,next year,every day,every week,every morning,each year,one day,one night,that day,"
    "that evening,all day,all the time,most days,the other day,the next morning,years ago,long ago,"
    "last Friday,next Monday,on Sunday,at night,in June,as well,too often,many times,three times,"
    "a year later,some day,any time,recently,constantly,already,before,immediately,ever since,here,"
    "there,everywhere,sometime,someday,right away,nowadays,anywhere,forever,these days,half a day",
    "after": "too,either,as well,instead,anyway,though,there,here,well,badly,a lot,very much,much,"
    "so much,enough,dearly,personally,more,most,best,better,alone,at all,first,again,together,"
    "straight away,somewhere,even more,less,right now,once more,to death,home,hard,like that,"
    "however,therefore,perhaps,of course,please,back,all along,anymore,not <them>,until now",
}

WORDS = {name: tuple(words.split(",")) for name, words in _LISTS.items()}
